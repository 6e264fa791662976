/* Replay requests on a device with O_DIRECT, each when the request that it waits for is complete.

   replay DEVICE REQUESTS FACTS

   REQUESTS: one record of six 64-bit integers a request, in order of arrival: kind (0 read, 1 write,
   3 flush), offset, length (bytes), parent (-1: none), gap and arrival (ns).  It is issued `gap`
   after the completion of its parent, or at its arrival without one; it is loaded, in order, while
   fewer than WINDOW are loaded and not complete.  FACTS: issue and completion of each request,
   in ns since the start.  What is written is zeros. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { AWAKE = 150000 /* ns before a request at which to wait without sleeping */ };
enum { WINDOW = 4096, READ = 0, WRITE = 1, FLUSH = 3, ALIGNMENT = 4096 };

struct request { int64_t kind, offset, length, parent, gap, arrival; };
struct fact { int64_t issue, done; };

static const int64_t SECOND = 1000000000;
static struct request *requests;
static struct fact *facts;
static int64_t count, loaded, complete;
static int64_t *first_child, *next_child; /* of requests that wait for one, -1: none */
static int64_t heap[WINDOW + 1], due[WINDOW + 1], used; /* ready requests, the earliest first */
static struct timespec start;

static void fail(const char *what) { perror(what); exit(1); }

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (t.tv_sec - start.tv_sec) * SECOND + t.tv_nsec - start.tv_nsec;
}

static int before(int64_t a, int64_t b)
{
	return due[a] < due[b] || (due[a] == due[b] && heap[a] < heap[b]);
}

static void swap(int64_t a, int64_t b)
{
	int64_t number = heap[a], time = due[a];
	heap[a] = heap[b], due[a] = due[b], heap[b] = number, due[b] = time;
}

static void push(int64_t number, int64_t time)
{
	int64_t at = used++;
	heap[at] = number, due[at] = time;
	for (; at && before(at, (at - 1) / 2); at = (at - 1) / 2)
		swap(at, (at - 1) / 2);
}

static int64_t pop(void)
{
	int64_t number = heap[0], at = 0;
	swap(0, --used);
	for (;;) {
		int64_t least = at, child = 2 * at + 1;
		if (child < used && before(child, least)) least = child;
		if (child + 1 < used && before(child + 1, least)) least = child + 1;
		if (least == at) return number;
		swap(at, least);
		at = least;
	}
}

static void load(void)
{
	while (loaded < count && loaded - complete < WINDOW) {
		struct request *each = &requests[loaded];
		int64_t parent = each->parent;
		if (parent < 0)
			push(loaded, each->arrival);
		else if (facts[parent].done)
			push(loaded, facts[parent].done + each->gap);
		else
			next_child[loaded] = first_child[parent], first_child[parent] = loaded;
		loaded++;
	}
}

static void completed(int64_t number)
{
	int64_t child = first_child[number];
	facts[number].done = now();
	complete++;
	for (; child >= 0; child = next_child[child])
		push(child, facts[number].done + requests[child].gap);
}

int main(int argc, char **argv)
{
	static struct iocb blocks[WINDOW];
	static struct io_event events[WINDOW];
	int64_t free_blocks[WINDOW], frees = WINDOW, longest = ALIGNMENT;
	aio_context_t context = 0;
	struct stat about;
	void *buffers[2]; /* what is read; zeros to write */
	int device, file;

	if (argc != 4) return fprintf(stderr, "usage: replay DEVICE REQUESTS FACTS\n"), 2;
	prctl(PR_SET_TIMERSLACK, 1);
	if ((file = open(argv[2], O_RDONLY)) < 0 || fstat(file, &about)) fail(argv[2]);
	count = about.st_size / (int64_t)sizeof *requests;
	requests = malloc(about.st_size);
	for (int64_t got = 0; got < about.st_size;) {
		ssize_t part = read(file, (char *)requests + got, about.st_size - got);
		if (part <= 0) fail(argv[2]);
		got += part;
	}
	close(file);
	facts = calloc(count, sizeof *facts);
	first_child = malloc(count * sizeof *first_child);
	next_child = malloc(count * sizeof *next_child);
	memset(first_child, -1, count * sizeof *first_child);
	memset(next_child, -1, count * sizeof *next_child);
	for (int64_t i = 0; i < count; i++)
		if (requests[i].length > longest) longest = requests[i].length;
	for (int i = 0; i < 2; i++) {
		if (posix_memalign(&buffers[i], ALIGNMENT, longest)) fail("memory");
		memset(buffers[i], 0, longest);
	}
	for (int64_t i = 0; i < WINDOW; i++) free_blocks[i] = i;
	if ((device = open(argv[1], O_RDWR | O_DIRECT)) < 0) fail(argv[1]);
	if (syscall(SYS_io_setup, WINDOW, &context)) fail("io_setup");
	clock_gettime(CLOCK_MONOTONIC, &start);
	while (complete < count) {
		struct timespec wait = {1, 0};
		int64_t time = now(), got;
		load();
		while (used && due[0] <= time && frees) {
			int64_t number = pop();
			struct request *each = &requests[number];
			struct iocb *block = &blocks[free_blocks[--frees]];
			memset(block, 0, sizeof *block);
			block->aio_data = number;
			block->aio_fildes = device;
			block->aio_lio_opcode = each->kind == READ ? IOCB_CMD_PREAD
				: each->kind == WRITE ? IOCB_CMD_PWRITE : IOCB_CMD_FSYNC;
			if (each->kind != FLUSH) {
				block->aio_buf = (uint64_t)(uintptr_t)buffers[each->kind == WRITE];
				block->aio_nbytes = each->length;
				block->aio_offset = each->offset;
			}
			facts[number].issue = now();
			if (syscall(SYS_io_submit, context, 1, &block) != 1) fail("io_submit");
			time = now();
		}
		if (used && frees) {
			int64_t left = due[0] - time - AWAKE;
			if (left < 0) left = 0;
			wait.tv_sec = left / SECOND, wait.tv_nsec = left % SECOND;
		}
		got = syscall(SYS_io_getevents, context, 1, WINDOW, events, &wait);
		if (got < 0 && errno != EINTR) fail("io_getevents");
		for (int64_t i = 0; i < got; i++) {
			struct iocb *block = (struct iocb *)(uintptr_t)events[i].obj;
			int64_t wanted = (int64_t)block->aio_nbytes;
			if ((int64_t)events[i].res != wanted) {
				errno = -(int)events[i].res;
				fprintf(stderr, "request %lld: ", (long long)events[i].data);
				fail("failed");
			}
			free_blocks[frees++] = block - blocks;
			completed((int64_t)events[i].data);
		}
	}
	if ((file = open(argv[3], O_WRONLY | O_CREAT | O_TRUNC, 0644)) < 0) fail(argv[3]);
	for (int64_t put = 0, size = count * (int64_t)sizeof *facts; put < size;) {
		ssize_t part = write(file, (char *)facts + put, size - put);
		if (part <= 0) fail(argv[3]);
		put += part;
	}
	return 0;
}
