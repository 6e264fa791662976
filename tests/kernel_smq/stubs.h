/* What dm-cache's policy smq needs of a kernel, for a program in user space.
 *
 * Written from the interfaces that the policy's files use.  Locks do nothing, as one thread runs;
 * the tree of pending work is not balanced, as only its answers count; `jiffies` is set by the
 * driver.
 */
#ifndef SMQ_STUBS_H
#define SMQ_STUBS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>

/* Headers of the kernel that are not read. */
#define DM_INTERNAL_H
#define _LINUX_DM_BLOCK_MANAGER_H

typedef uint64_t sector_t;
typedef uint64_t dm_block_t;
typedef int gfp_t;

#define HZ 250
#define READ 0
#define WRITE 1
#define BITS_PER_LONG 64
#define GFP_KERNEL 0
#define GFP_NOWAIT 0
#define THIS_MODULE NULL
#define __bitwise
#define __force
#define __init
#define __exit

extern unsigned long jiffies;
#define time_after(a, b) ((long)((b) - (a)) < 0)

/* Modules and messages */
#define EXPORT_SYMBOL_GPL(name) struct smq_stub_nothing
#define module_init(f) static int (*const smq_stub_init)(void) __attribute__((unused)) = f
#define module_exit(f) static void (*const smq_stub_exit)(void) __attribute__((unused)) = f
#define MODULE_AUTHOR(text) struct smq_stub_nothing
#define MODULE_LICENSE(text) struct smq_stub_nothing
#define MODULE_DESCRIPTION(text) struct smq_stub_nothing
#define MODULE_ALIAS(text) struct smq_stub_nothing
struct module;
#define DMERR(...) (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr))
#define DMWARN(...) DMERR(__VA_ARGS__)
#define DMEMIT(...) (sz += snprintf(result + sz, maxlen - sz, __VA_ARGS__))
#define BUG_ON(what) \
	do { \
		if (what) { \
			fprintf(stderr, "BUG_ON(%s) at %s:%d\n", #what, __FILE__, __LINE__); \
			abort(); \
		} \
	} while (0)
#define WARN_ON_ONCE(what) \
	({ \
		bool is_so = (what); \
		if (is_so) \
			fprintf(stderr, "WARN_ON(%s) at %s:%d\n", #what, __FILE__, __LINE__); \
		is_so; \
	})

/* Numbers */
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define dm_div_up(n, size) (((n) + (size) - 1) / (size))
#define array_size(n, size) ((size_t)(n) * (size))
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))

static inline uint64_t div64_u64(uint64_t a, uint64_t b)
{
	return a / b;
}

#define sector_div(a, b) \
	({ \
		uint32_t rest = (a) % (b); \
		(a) /= (b); \
		rest; \
	})

static inline unsigned long roundup_pow_of_two(unsigned long n)
{
	unsigned long power = 1;

	while (power < n)
		power *= 2;
	return power;
}

static inline unsigned long __ffs(unsigned long word)
{
	return __builtin_ctzl(word);
}

/* Multiplicative hashing by the golden ratio; of what is compared only the levels of blocks that
 * are loaded without a hint depend on it. */
static inline uint32_t hash_32(uint32_t value, unsigned int bits)
{
	return value * 0x61C88647u >> (32 - bits);
}

static inline uint32_t hash_64(uint64_t value, unsigned int bits)
{
	return value * 0x61C8864680B583EBull >> (64 - bits);
}

/* Bits */
static inline int test_and_set_bit(unsigned int bit, unsigned long *words)
{
	unsigned long mask = 1ul << bit % 64;
	int was = (words[bit / 64] & mask) != 0;

	words[bit / 64] |= mask;
	return was;
}

static inline void clear_bit(unsigned int bit, unsigned long *words)
{
	words[bit / 64] &= ~(1ul << bit % 64);
}

/* Memory */
#define kmalloc(size, flags) malloc(size)
#define kzalloc(size, flags) calloc(1, size)
#define kfree(place) free(place)
#define vmalloc(size) malloc(size)
#define vzalloc(size) calloc(1, size)
#define vfree(place) free(place)

struct kmem_cache;

/* One kind of thing is allocated from caches: the tracker's items. */
#define KMEM_CACHE(name, flags) ((struct kmem_cache *)malloc(1))
#define kmem_cache_destroy(cache) free(cache)
#define kmem_cache_alloc(cache, flags) malloc(sizeof(struct bt_work))
#define kmem_cache_free(cache, place) free(place)

/* Locks and counts */
typedef int spinlock_t;
#define spin_lock_init(lock) ((void)(lock))
#define spin_lock_irqsave(lock, flags) ((void)(lock), (void)((flags) = 0))
#define spin_unlock_irqrestore(lock, flags) ((void)(lock), (void)(flags))

typedef struct {
	int count;
} atomic_t;
#define atomic_set(a, n) ((a)->count = (n))
#define atomic_read(a) ((a)->count)
#define atomic_add(n, a) ((a)->count += (n))

#define kstrtoul(text, base, result) (*(result) = strtoul(text, NULL, base), 0)

/* Lists: a ring through its head */
struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *head)
{
	head->next = head->prev = head;
}

static inline int list_empty(const struct list_head *head)
{
	return head->next == head;
}

static inline void list_add(struct list_head *node, struct list_head *head)
{
	node->prev = head;
	node->next = head->next;
	head->next->prev = node;
	head->next = node;
}

static inline void list_del(struct list_head *node)
{
	node->next->prev = node->prev;
	node->prev->next = node->next;
}

static inline void list_move(struct list_head *node, struct list_head *head)
{
	list_del(node);
	list_add(node, head);
}

#define list_entry(node, type, member) container_of(node, type, member)
#define list_first_entry(head, type, member) list_entry((head)->next, type, member)
#define list_for_each_entry_safe(each, after, head, member) \
	for (each = list_entry((head)->next, __typeof__(*each), member), \
	     after = list_entry(each->member.next, __typeof__(*each), member); \
	     &each->member != (head); \
	     each = after, after = list_entry(each->member.next, __typeof__(*each), member))

/* A search tree: linked by the policy's own search */
struct rb_node {
	struct rb_node *above, *rb_left, *rb_right;
};

struct rb_root {
	struct rb_node *rb_node;
};

#define RB_ROOT ((struct rb_root){NULL})

static inline void rb_link_node(struct rb_node *node, struct rb_node *above, struct rb_node **link)
{
	node->above = above;
	node->rb_left = node->rb_right = NULL;
	*link = node;
}

#define rb_insert_color(node, root) ((void)(node), (void)(root))

static inline void smq_stub_put(struct rb_root *root, struct rb_node *old, struct rb_node *node)
{
	if (!old->above)
		root->rb_node = node;
	else if (old->above->rb_left == old)
		old->above->rb_left = node;
	else
		old->above->rb_right = node;
	if (node)
		node->above = old->above;
}

static inline void rb_erase(struct rb_node *node, struct rb_root *root)
{
	struct rb_node *next = node->rb_right;

	if (!node->rb_left || !next) {
		smq_stub_put(root, node, next ? next : node->rb_left);
		return;
	}
	while (next->rb_left)
		next = next->rb_left;
	smq_stub_put(root, next, next->rb_right);
	smq_stub_put(root, node, next);
	next->rb_left = node->rb_left;
	next->rb_right = node->rb_right;
	if (next->rb_left)
		next->rb_left->above = next;
	if (next->rb_right)
		next->rb_right->above = next;
}

#endif
