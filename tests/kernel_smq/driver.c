/* Runs random calls on dm-cache's policy smq, built from the kernel source that a user has.
 *
 * Each call and its answer becomes a row, so that a model can be asked the same.  Calls are those
 * that the target makes, in its order: it sets a dirty bit only where it changes, and work that
 * ends well changes the bit as well.
 */
#include "stubs.h"

#include <dm-cache-background-tracker.c>
#undef DM_MSG_PREFIX
#include <dm-cache-policy-smq.c>

unsigned long jiffies;

int dm_cache_policy_register(struct dm_cache_policy_type *type)
{
	return 0;
}

void dm_cache_policy_unregister(struct dm_cache_policy_type *type)
{
}

enum { TICK, LOOKUP, WORK, DONE, SET_DIRTY, CLEAR_DIRTY, INVALIDATE, ALLOW, LOAD, STATE };

/* Answers of a lookup; others are a slot, or PROMOTION minus a slot. */
enum { NOT_WANTED = -1, WANTED = -2, PROMOTION = -10 };

struct row {
	int64_t call, a, b, answer;
};

/* All in the order of the Python class `Plan`. */
struct plan {
	int64_t seed, rows, blocks, block_sectors, origin_sectors;
	int64_t weight[9];  /* of each call but STATE */
	int64_t range;      /* of origin blocks that are looked up */
	int64_t skew;       /* 0: uniform; else the number of draws whose least is taken */
	int64_t sequential; /* in a thousand: the next block */
	int64_t cached;     /* in a thousand: a cached block */
	int64_t writes, fast, idle, fails, dirties; /* in a thousand */
	int64_t filled;     /* blocks that are filled at first */
	int64_t pace;       /* 0: jiffies, 1: seconds, 2: minutes between ticks */
};

struct issued {
	struct policy_work *work;
	bool is_overwrite;
};

struct run {
	const struct plan *plan;
	struct dm_cache_policy *policy;
	struct smq_policy *mq;
	uint64_t random;
	int64_t next;
	struct row *rows;
	int64_t count;
	bool *promoting; /* by slot */
	struct issued *issued;
	int64_t issued_count;
};

static uint64_t draw(struct run *run)
{
	uint64_t x = run->random += 0x9E3779B97F4A7C15ull;

	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
	x = (x ^ x >> 27) * 0x94D049BB133111EBull;
	return x ^ x >> 31;
}

static int64_t below(struct run *run, int64_t limit)
{
	return (int64_t)(draw(run) % (uint64_t)limit);
}

static bool happens(struct run *run, int64_t in_thousand)
{
	return below(run, 1000) < in_thousand;
}

static void record(struct run *run, int64_t call, int64_t a, int64_t b, int64_t answer)
{
	run->rows[run->count++] = (struct row){call, a, b, answer};
}

static struct entry *slot(struct run *run, int64_t number)
{
	return get_entry(&run->mq->cache_alloc, number);
}

static bool is_cached(struct run *run, int64_t number)
{
	return slot(run, number)->allocated && !run->promoting[number];
}

static int64_t cached_slot(struct run *run)
{
	int64_t number;
	int tries;

	for (tries = 0; tries < 8; tries++) {
		number = below(run, run->plan->blocks);
		if (is_cached(run, number))
			return number;
	}
	return -1;
}

static int64_t chosen_block(struct run *run)
{
	const struct plan *plan = run->plan;
	int64_t i, other, block;

	if (happens(run, plan->cached)) {
		block = cached_slot(run);
		if (block >= 0)
			return slot(run, block)->oblock;
	}
	if (happens(run, plan->sequential)) {
		run->next = (run->next + 1) % plan->range;
		return run->next;
	}
	block = below(run, plan->range);
	for (i = 0; i < plan->skew; i++) {
		other = below(run, plan->range);
		if (other < block)
			block = other;
	}
	return block;
}

static void issue(struct run *run, struct policy_work *work, bool is_overwrite)
{
	run->issued[run->issued_count++] = (struct issued){work, is_overwrite};
}

static void look_up(struct run *run, int64_t block, bool write, bool fast)
{
	struct policy_work *work = NULL;
	bool is_wanted = false;
	dm_cblock_t found;
	int64_t answer;
	int r;

	if (fast)
		r = run->policy->lookup_with_work(run->policy, block, &found, write, true, &work);
	else
		r = run->policy->lookup(run->policy, block, &found, write, false, &is_wanted);
	if (r == 0)
		answer = found;
	else if (work)
		answer = PROMOTION - (int64_t)work->cblock;
	else
		answer = is_wanted ? WANTED : NOT_WANTED;
	record(run, LOOKUP, block, write | fast << 1, answer);
	if (work) {
		run->promoting[work->cblock] = true;
		issue(run, work, true);
	} else if (r == 0 && write && happens(run, run->plan->dirties) && !slot(run, found)->dirty) {
		run->policy->set_dirty(run->policy, found);
		record(run, SET_DIRTY, found, 0, 0);
	}
}

/* A promotion that was queued holds its slot, too. */
static void mark_promoting(struct run *run)
{
	struct list_head *queued = &run->mq->bg_work->queued;
	struct bt_work *newest = list_first_entry(queued, struct bt_work, list);

	if (!list_empty(queued) && newest->work.op == POLICY_PROMOTE)
		run->promoting[newest->work.cblock] = true;
}

static void get_work(struct run *run, bool idle)
{
	struct policy_work *work = NULL;
	int r = run->policy->get_background_work(run->policy, idle, &work);

	if (r) {
		record(run, WORK, idle, -1, -1);
		return;
	}
	record(run, WORK, idle, work->oblock, (int64_t)work->cblock * 4 + work->op);
	issue(run, work, false);
}

static void end_work(struct run *run, int64_t index, bool success)
{
	struct issued it = run->issued[index];
	struct policy_work work = *it.work;
	bool is_promotion = work.op == POLICY_PROMOTE;
	struct dm_cache_policy *policy = run->policy;

	run->issued[index] = run->issued[--run->issued_count];
	if (success && !is_promotion)
		policy->clear_dirty(policy, work.cblock);
	policy->complete_background_work(policy, it.work, success);
	if (is_promotion) {
		run->promoting[work.cblock] = false;
		if (success && it.is_overwrite)
			policy->set_dirty(policy, work.cblock);
		else if (success)
			policy->clear_dirty(policy, work.cblock);
	}
	record(run, DONE, work.oblock, success, it.is_overwrite);
}

static void load(struct run *run, int64_t how)
{
	const struct plan *plan = run->plan;
	bool has_hints = how & 1, all_dirty = how & 2, cleaner = how & 4;
	struct dm_cache_policy *old = run->policy, *policy;
	struct entry *each;
	int64_t number;

	jiffies--; /* the policy exists a jiffy before its first tick */
	policy = (cleaner ? cleaner_create : smq_create)(plan->blocks, plan->origin_sectors,
							 plan->block_sectors);
	jiffies++;
	for (number = 0; old && number < plan->blocks; number++) {
		if (!is_cached(run, number))
			continue;
		each = slot(run, number);
		policy->load_mapping(policy, each->oblock, number, all_dirty || each->dirty,
				     old->get_hint(old, number), has_hints);
	}
	while (run->issued_count > 0)
		old->complete_background_work(old, run->issued[--run->issued_count].work, false);
	if (old)
		old->destroy(old);
	memset(run->promoting, 0, plan->blocks * sizeof(bool));
	run->policy = policy;
	run->mq = to_smq_policy(policy);
	if (old)
		record(run, LOAD, jiffies, how, 0);
}

static void tick(struct run *run)
{
	static const int64_t steps[3][4] = {{0, 1, 3, 50}, {1, 60, 256, 2501}, {256, 2500, 2501, 15001}};

	jiffies += steps[run->plan->pace][below(run, 4)];
	run->policy->tick(run->policy, false);
	record(run, TICK, jiffies, 0, 0);
}

/* The state */

static int64_t *put_queue(struct run *run, struct queue *q, bool has_sentinels, int64_t *to)
{
	bool is_hotspot = q == &run->mq->hotspot;
	unsigned int level, index;
	struct entry *e;

	for (level = 0; level < 64; level++) {
		*to++ = q->target_count[level];
		for (e = l_head(q->es, q->qs + level); e; e = l_next(q->es, e)) {
			if (e->sentinel && has_sentinels) {
				index = get_index(&run->mq->writeback_sentinel_alloc, e);
				*to++ = index < 64 ? -3 : -2;
			} else if (is_hotspot) {
				index = get_index(&run->mq->hotspot_alloc, e);
				*to++ = e->oblock;
				*to++ = run->mq->hotspot_hit_bits[index / 64] >> index % 64 & 1;
			} else if (!e->sentinel) {
				*to++ = get_index(&run->mq->cache_alloc, e);
			}
		}
		*to++ = -1;
	}
	return to;
}

static int64_t *put_state(struct run *run, int64_t *to)
{
	struct smq_policy *mq = run->mq;
	struct bt_work *work, *after;
	struct entry *e;
	int64_t number;

	*to++ = mq->hotspot_stats.hits;
	*to++ = mq->hotspot_stats.misses;
	*to++ = mq->hotspot_level_jump;
	*to++ = mq->read_promote_level;
	*to++ = mq->next_hotspot_period;
	*to++ = mq->next_cache_period;
	*to++ = mq->next_writeback_period;
	*to++ = mq->current_writeback_sentinels;
	*to++ = atomic_read(&mq->bg_work->pending_promotes);
	*to++ = atomic_read(&mq->bg_work->pending_demotes);
	*to++ = atomic_read(&mq->bg_work->pending_writebacks);
	list_for_each_entry_safe (work, after, &mq->bg_work->queued, list) {
		*to++ = work->work.oblock;
		*to++ = work->work.op;
	}
	*to++ = -1;
	for (e = l_head(&mq->es, &mq->cache_alloc.free); e; e = l_next(&mq->es, e))
		*to++ = get_index(&mq->cache_alloc, e);
	*to++ = -1;
	for (number = 0; number < run->plan->blocks; number++) {
		*to++ = mq->cache_hit_bits[number / 64] >> number % 64 & 1;
		if (is_cached(run, number)) {
			e = slot(run, number);
			*to++ = e->oblock;
			*to++ = e->level;
			*to++ = e->dirty;
		}
	}
	to = put_queue(run, &mq->clean, false, to);
	to = put_queue(run, &mq->dirty, true, to);
	return put_queue(run, &mq->hotspot, false, to);
}

static void record_state(struct run *run, int64_t *state)
{
	int64_t *end = put_state(run, state), *each;
	uint64_t hash = 0xCBF29CE484222325ull;

	for (each = state; each < end; each++)
		hash = (hash ^ (uint64_t)*each) * 0x100000001B3ull;
	record(run, STATE, end - state, 0, (int64_t)hash);
}

static void call(struct run *run, int what)
{
	const struct plan *plan = run->plan;
	int64_t number;
	bool write, is_idle;

	switch (what) {
	case TICK:
		tick(run);
		break;
	case LOOKUP:
		write = happens(run, plan->writes);
		number = chosen_block(run);
		look_up(run, number, write, happens(run, plan->fast));
		mark_promoting(run);
		break;
	case WORK:
		is_idle = happens(run, plan->idle);
		get_work(run, is_idle);
		break;
	case DONE:
		if (run->issued_count > 0) {
			number = below(run, run->issued_count);
			end_work(run, number, !happens(run, plan->fails));
		}
		break;
	case SET_DIRTY:
		number = cached_slot(run);
		if (number >= 0 && !slot(run, number)->dirty) {
			run->policy->set_dirty(run->policy, number);
			record(run, SET_DIRTY, number, 0, 0);
		}
		break;
	case CLEAR_DIRTY:
		number = cached_slot(run);
		if (number >= 0 && slot(run, number)->dirty) {
			run->policy->clear_dirty(run->policy, number);
			record(run, CLEAR_DIRTY, number, 0, 0);
		}
		break;
	case INVALIDATE:
		number = cached_slot(run);
		if (number >= 0 && !slot(run, number)->pending_work) {
			run->policy->invalidate_mapping(run->policy, number);
			record(run, INVALIDATE, number, 0, 0);
		}
		break;
	case ALLOW:
		number = below(run, 2);
		run->policy->allow_migrations(run->policy, number);
		record(run, ALLOW, number, 0, 0);
		break;
	default:
		load(run, below(run, 8));
	}
}

/* Fill `rows`, of which there are plan->rows; return how many were filled.  `state` has room for
 * one state, which is the last one recorded at return. */
int64_t smq_run(const struct plan *plan, struct row *rows, int64_t *state)
{
	struct run run = {.plan = plan, .random = plan->seed, .rows = rows};
	int64_t total = 0, next_state = plan->rows / 6, block, chosen;
	int what;

	run.promoting = calloc(plan->blocks, sizeof(bool));
	run.issued = malloc(5000 * sizeof(struct issued));
	jiffies = 0;
	load(&run, 1);
	for (what = 0; what <= LOAD; what++)
		total += plan->weight[what];
	for (block = 0; block < plan->filled && run.count < plan->rows - 8; block++) {
		look_up(&run, block, true, true);
		if (run.issued_count > 0)
			end_work(&run, 0, true);
	}
	while (run.count < plan->rows - 8) {
		chosen = below(&run, total);
		for (what = 0; chosen >= plan->weight[what]; what++)
			chosen -= plan->weight[what];
		call(&run, what);
		if (run.count >= next_state) {
			record_state(&run, state);
			next_state += plan->rows / 6;
		}
	}
	record_state(&run, state);
	while (run.issued_count > 0)
		run.policy->complete_background_work(run.policy, run.issued[--run.issued_count].work,
						     false);
	run.policy->destroy(run.policy);
	free(run.promoting);
	free(run.issued);
	return run.count;
}
