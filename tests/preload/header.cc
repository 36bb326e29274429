// SPDX-License-Identifier: Apache-2.0
// header - annotate.h compiles by itself as C++, every verb, with all warnings.
#include <longpole/annotate.h>

struct server {
	uint64_t serve(int number)
	{
		longpole::machine machine(LONGPOLE_NAME("server"), this, LONGPOLE_LINK);
		longpole::machine inner(LONGPOLE_NAME("handler"), number);
		longpole_begin("machine", this, LONGPOLE_LINK);
		longpole_state("state", LONGPOLE_SUSPECT);
		longpole_enqueue("queue", this, 1, 0);
		longpole_enqueue("queue", number, number, LONGPOLE_LIFO | LONGPOLE_RESET);
		longpole_dequeue_all("queue", this, 0);
		longpole_peek("queue", this, LONGPOLE_ALL, 0);
		longpole_wait_empty("queue", this, 1, LONGPOLE_END);
		longpole_enqueue_item("queue", this, number, 1, LONGPOLE_PRIORITY);
		longpole_dequeue_state("queue", this, 1, 0, "state");
		longpole_dequeue_item("queue", this, this, 1, LONGPOLE_PRIORITY | LONGPOLE_END);
		longpole_enqueue("tokens", 0, 1, LONGPOLE_POOL | LONGPOLE_ANONYMOUS);
		longpole_act("fiber", this);
		longpole_link("other", this, LONGPOLE_END);
		longpole_link_call();
		longpole_end("machine");
		longpole_identify(0);
		return longpole_get_id();
	}
};

uint64_t use(server &s);
uint64_t use(server &s)
{
	return s.serve(3);
}
