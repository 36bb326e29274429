/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messages - a producer and its child, a consumer, with a queue of at most four messages between
 * them: --by=posix (mq_open) or sysv (msgget). The --slow= side has five times the other's work,
 * and is the section.
 * Known answer: the path is the slow side's work; the other waits for messages, or for room.
 */
#include <fcntl.h>
#include <mqueue.h>
#include <sys/msg.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target.h"

enum { QUEUE_MESSAGES = 4, KEY_BASE = 0x4c500000 };

struct message {
	long type; /* of System V */
	uint64_t item;
};

static mqd_t posix_queue;
static int sysv_queue = -1;

TARGET_FUNCTION uint64_t produce(uint64_t item, uint64_t units)
{
	TARGET_WORK(item, units); /* section producer */
	return item;
}

TARGET_FUNCTION uint64_t consume(uint64_t item, uint64_t units)
{
	TARGET_WORK(item, units); /* section consumer */
	return item;
}

static void make_posix(void)
{
	char name[64];
	struct mq_attr attributes = {
		.mq_maxmsg = QUEUE_MESSAGES, .mq_msgsize = sizeof(struct message)};
	snprintf(name, sizeof name, "/longpole_messages_%d", (int)getpid());
	posix_queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
	target_must(posix_queue >= 0, "mq_open");
	target_must(!mq_unlink(name), "mq_unlink");
}

static void make_sysv(void)
{
	struct msqid_ds queue;
	sysv_queue = msgget(KEY_BASE + getpid(), IPC_CREAT | IPC_EXCL | 0600);
	target_must(sysv_queue >= 0 && !msgctl(sysv_queue, IPC_STAT, &queue), "msgget");
	queue.msg_qbytes = QUEUE_MESSAGES * sizeof(uint64_t);
	target_must(!msgctl(sysv_queue, IPC_SET, &queue), "msgctl");
}

static void send_item(uint64_t item)
{
	struct message message = {1, item};
	if (sysv_queue < 0)
		target_must(!mq_send(posix_queue, (char *)&message, sizeof message, 1), "mq_send");
	else
		target_must(!msgsnd(sysv_queue, &message, sizeof item, 0), "msgsnd");
}

static uint64_t receive_item(void)
{
	struct message message;
	if (sysv_queue < 0)
		target_must(mq_receive(posix_queue, (char *)&message, sizeof message, NULL) > 0,
			"mq_receive");
	else
		target_must(msgrcv(sysv_queue, &message, sizeof message.item, 0, 0) > 0, "msgrcv");
	return message.item;
}

static int run_consumer(uint64_t nr_items, uint64_t units)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < nr_items; i++) {
		sum += consume(receive_item(), target_vary(2, i, units));
		TARGET_PROGRESS("item");
	}
	return sum == 0;
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--section-percent --by --slow --items --units");
	uint64_t percent = target_percent(argc, argv);
	uint64_t nr_items = target_number(argc, argv, "--items", 1500);
	uint64_t units = target_number(argc, argv, "--units", 250);
	bool slow_producer = !strcmp(target_text(argc, argv, "--slow", "producer"), "producer");
	bool posix = !strcmp(target_text(argc, argv, "--by", "posix"), "posix");
	uint64_t slow = units * percent / 100, quick = units / 5;
	if (posix)
		make_posix();
	else
		make_sysv();
	pid_t child = fork();
	target_must(child >= 0, "fork");
	if (!child)
		_exit(run_consumer(nr_items, slow_producer ? quick : slow));
	uint64_t last = 0;
	for (uint64_t i = 0; i < nr_items; i++) {
		last = produce(i, target_vary(1, i, slow_producer ? slow : quick));
		send_item(last);
	}
	int status = 0;
	target_must(waitpid(child, &status, 0) == child, "waitpid");
	if (!posix)
		target_must(!msgctl(sysv_queue, IPC_RMID, NULL), "msgctl");
	target_print(last);
	return status != 0;
}
