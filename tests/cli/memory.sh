# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $work comes from run.sh
# memory.sh - longpole ciat, cdat, tdat on traces made here.

# make_smait STEM - two threads that count in neighbouring words of one line, then meet; SMAIT's format.
make_smait() {
	python3 - "$1" <<-'END'
		import struct, sys
		def call(kind, start, end, *a):
		    fields = [start, end] + list(a) + [0] * (4 - len(a))
		    return b"".join(struct.pack(">II", 0x1000 | kind << 4 | i, f) for i, f in enumerate(fields))
		def access(store, address):
		    return struct.pack(">II", store | 0x40, address)
		zero = access(1, 0x20000) + call(1, 10, 20, 7, 2)
		one = b""
		for i in range(100):
		    zero += access(0, 0x10000) + access(1, 0x10000)
		    one += access(0, 0x10004) + access(1, 0x10004)
		zero += call(3, 100, 110, 0x999, 2) + call(2, 200, 210, 7)
		one += call(3, 90, 110, 0x999, 2) + access(0, 0x20000) + call(2, 200, 210, 7)
		for i, data in enumerate((zero, one)):
		    with open("%s.%d" % (sys.argv[1], i), "wb") as file:
		        file.write(data)
	END
}

test_ciat_finds_false_sharing() {
	make_smait run.2
	expect 0 longpole ciat run.2
	has out 'False sharing: 100% of the' '0x10000  false 199  true 0' '1 parallel 7'
	expect 0 longpole ciat --json run.2
	is_json out '.schema == "longpole/ciat/1" and .result.total.all.raw == 1 and .result.threads == 2'
	is_json out '.result.lines[0].address == "0x10000" and .result.lines[0].false_misses == 199'
	is_json out '.result.usage.touched_bytes == 12 and .result.usage.shared_bytes == 4'
	is_json out '[.result.phases[].phase] == ["serial", "parallel"] and .source.diagnostics == []'
}

# The remedy, two lines: nothing is left to find.
test_ciat_after_the_remedy() {
	make_smait run.2
	python3 - <<-'END'
		data = open("run.2.1", "rb").read().replace(b"\0\1\0\4", b"\0\1\0\x44")
		open("run.2.1", "wb").write(data)
	END
	expect 0 longpole ciat --json run.2
	is_json out '.result.total.all.line_false_sharing_misses == 0'
}

test_ciat_files() {
	make_smait run.2
	expect 0 longpole ciat --tags --report=report --memory-file=usage --events=events run.2
	cmp out report || fail "--tags and --report differ"
	has report 'R1T1L31: RAW 1 0.50%' 'R1TxL32: sharing degree 1 1' 'RxTxL44: touched memory locations in bytes 12'
	[[ $(tail -n +3 usage) == $'16 8 0 0 400 0 0 0 -1\n32 4 0 4 2 0 2 0 -1' ]] || { cat usage >&2; fail "memory usage file"; }
	[[ $(tail -n +2 events) == '201 1 1 0' ]] || { cat events >&2; fail "event trace"; }
	expect 0 longpole ciat --smait=copy run.2
	cmp copy.1 run.2.1 || fail "a SMAIT trace changes when it is read and written"
}

test_cdat_counts() {
	make_smait run.2
	printf '[machine]\nnodes = 2\nprocessors = 1\nprotocol = dir1\nallocation = rr1\n' >two.cfg
	expect 0 longpole cdat --check --json run.2 two.cfg
	is_json out '.schema == "longpole/cdat/1" and .result.total.data.hits + .result.total.data.misses == 402'
	is_json out '(.result.total.transactions_by_type | .read_shar_or_priv + .read_priv_own) == .result.total.data.misses'
	expect 0 longpole cdat --detailed=all --general=each --tags run.2 two.cfg
	has out 'RxTxL03: average latency'
	[[ $(head -1 all) == '0 131072 3 0 0 0 0' ]] || fail "detailed trace: $(head -1 all)"
	# clock addr code proc node bank hnode status sharing_list -1
	grep -qx '1 65536 2 0 0 0 1 1 0 0 -1' each.0 || { head each.0 >&2; fail "general trace"; }
	[[ -f each.-2 ]] || fail "no trace of the second I/O processor"
	# What comes next is about the same machine.
	expect 0 longpole cdat --set=data_bytes=4K --set=protocol=dir2 --set='mapping=1:0 0:0' run.2 two.cfg
	has out "NEXT  longpole cdat --machine=two.cfg --set=data_bytes=4K --set='mapping=1:0 0:0' --set=protocol=moesi run.2"
	expect 0 longpole cdat --set=cycle_ps=1000 --set=protocol=moesi --set=nodes=2 run.2
	has out 'time with waits' '--set=protocol=dir1 run.2'
	expect 0 longpole cdat --output=both.lpt run.2 two.cfg
	local requests
	[[ $(longpole dump both.lpt | grep -c ' memory_transaction ') == $(wc -l <all) ]] || fail "transactions in both.lpt"
	[[ $(longpole dump both.lpt | grep -c ' memory_request ') == $(cat each.* | wc -l) ]] || fail "requests in both.lpt"
	requests=$(awk '$3 <= 6' each.0 each.1 | wc -l)
	[[ $requests == $(awk '$3 <= 6' all | wc -l) ]] || fail "$requests requests in the general trace"
}

# Every protocol, hierarchy and policy ends, and the monitor has no objection.
test_cdat_machines() {
	make_smait run.2
	local protocol machine
	expect 0 longpole ciat --memory-file=usage run.2
	for protocol in $(longpole cdat --list-parameters --json | jq -r '.result.protocols[].name'); do
		expect 0 longpole cdat --check --set=nodes=2 --set=protocol="$protocol" --set=allocation=oracle -m usage \
			--set=second_bytes=4096 --set=data_bytes=128 --set=interconnect_bytes=1024 --set=mapping=scatter run.2
		has out 'found nothing wrong'
	done
	for machine in "$LONGPOLE_SOURCE"/examples/machines/*.cfg; do
		expect 0 longpole cdat --check run.2 "$machine"
	done
}

test_tdat_figures() {
	printf '# events\n1 1 0\n9 2 0\n5 1 1\n20 1 0\n' >events
	expect 0 longpole tdat events 10 2
	has out '4 events: 0.1333 a clock' 'A processor of 2: 0.06667' 'after 1 of its 10 clocks.'
	printf '1\n2\n12\nx\n' >part
	expect 0 longpole tdat part 10
	has out 'after 3 of its 10 clocks; it is the bin' '1 line was no such record and left out (first: line 4)'
	expect 2 longpole tdat --where=7=1 events
	has err 'no record has the field' '7 of its fields'
	expect 0 longpole tdat --json --where=2=1 events 10
	is_json out '.result.bins == [2, 0, 1] and .result.most_events == 2 and .result.functions[0].density > 0.33'
	expect 0 longpole tdat --csv --svg=e.svg --time-file=e.time events 10
	[[ $(tail -n +2 out) == $'0,3\n10,0\n20,1' ]] || fail "CSV"
	xmllint --noout e.svg 2>/dev/null || ! command -v xmllint >/dev/null || fail "the SVG is no XML"
	has e.svg '<svg' 'events a bin of 10 clocks'
	echo nonsense >events
	expect 3 longpole tdat events
	has err 'line 1'
}

test_memory_mistakes() {
	make_smait run.2
	head -c 1001 run.2.1 >short && mv short run.2.1
	expect 0 longpole ciat run.2
	has out 'Caution: 1 stream ended inside a record (first: thread 1, record 126)' '1 barrier was left'
	expect 2 longpole ciat
	expect 2 longpole ciat --location=3 run.2
	local share command option
	for share in 2 1.001 0 -1 nan all; do
		expect 2 longpole ciat --reuse=$share run.2
		has err "--reuse=$share: "
	done
	expect 0 longpole ciat --reuse=1 run.2
	printf ' L 1000,4\n S 1000,4\n' >lackey
	expect 2 longpole ciat --format=lackey --order=pseudo lackey
	has err 'format lackey is one sequence'
	expect 0 longpole ciat --format=lackey lackey
	expect 2 longpole cdat --set=protocol=dir9 run.2
	has err 'dir8'
	expect 2 longpole cdat --set=processors=1 run.2
	has err '2 threads' '1 processor;'
	expect 2 longpole cdat --set=mapping=0:0 run.2
	has err '2 threads' 'mapping says where 1 of them' 'NODE:PROCESSOR'
	for option in affinity rr-interleaving keep-slices slice=9 buffered-io asynch-io dma-bw=9 disk-latency=9; do
		expect 2 longpole ciat --$option run.2
		has err "--${option%=*} goes with --"
	done
	for command in cdat ciat; do
		expect 4 longpole $command --max-memory=1K run.2
		has err 'more than 1024 bytes'
	done
	expect 2 longpole cdat --set=allocation=oracle run.2
	has err '--memory-file'
	expect 3 longpole ciat "$LONGPOLE"
	has err 'it is a program'
	expect 2 longpole ciat "$trace"
	has err 'no memory streams' 'for another question'
	expect 4 longpole ciat nothing.here
	expect 2 longpole tdat --bin=0 run.2.0
}

# All lines of a list count, with blanks around them or not; and a list of nothing is a mistake.
test_memory_lists() {
	make_smait run.2
	make_smait level1.2
	expect 0 longpole ciat --json run.2.0 run.2.1
	jq -S .result.total out >plain
	printf 'run.2.0\nrun.2.1\n' >two
	printf '\n  run.2.0 \r\n\n\trun.2.1' >untidy
	local list
	for list in two untidy; do
		expect 0 longpole ciat --json -t $list
		is_json out '.result.threads == 2'
		jq -S .result.total out | cmp -s - plain || fail "$list: not the answer of the two files"
		expect 0 longpole cdat --json --set=nodes=2 -c $list -t $list
		is_json out '.result.total.data.hits + .result.total.data.misses == 402'
	done
	printf 'level1.2.0\nlevel1.2.1\n' >calls
	expect 0 longpole ciat --json -c calls run.2
	is_json out '.result.threads == 2'
	printf '\n \n' >none
	expect 2 longpole ciat -t none
	has err 'none lists no trace'
}

# The seed's own command lines (its sections 4 and 6, appendix B).
test_memory_seed_spellings() {
	make_smait run.2
	make_smait level1.2
	expect 0 longpole ciat --json level1.2 run.2
	is_json out '.result.threads == 2 and .source.trace == "run.2"'
	printf '[machine]\nnodes = 2\nprocessors = 1\n' >dsm.cfg
	expect 0 longpole cdat --json level1.2 run.2 dsm.cfg
	is_json out '.result.total.data.hits + .result.total.data.misses == 402'
	expect 0 longpole ciat -ciat_events -HPUX run.2
	[[ $(tail -n +2 run.2.ciat_events) == '201 1 1 0' ]] || fail "$(cat run.2.ciat_events)"
	expect 0 longpole cdat --json -handle_io -buffered_io -asynch_io -distributed_io -dma_bw 10 -disk_latency 1 -ipc 1 run.2 dsm.cfg
	expect 0 longpole ciat --json -i 1 -rr_interleaving -p run.2
	printf '1\n2\n1500\n' >event_trace
	expect 0 longpole tdat event_trace event.time 1000 4
	has out '3 events' 'A processor of 4'
	[[ $(cat event.time) == $'0 2\n1000 1' ]] || fail "$(cat event.time)"
	expect 0 longpole tdat event_trace 1000 4
	expect 2 longpole tdat event_trace 1000 4 5
	has err "one operand too many"
	expect 2 longpole ciat -no_such run.2
	has err "unknown option '-no_such'"
}

# The time in which nothing of a kind happened is part of its distribution.
test_tdat_where_all_bins() {
	printf '1 1\n11 1\n25 2\n45 2\n' >events
	expect 0 longpole tdat --json --where=2=1 events 10
	is_json out '.result.bins == [1, 1, 0, 0, 0] and .result.mean_events == 0.4 and .result.events == 2'
	expect 0 longpole tdat --json --where=2=2 events 10
	is_json out '.result.bins == [0, 0, 1, 0, 1]'
	expect 0 longpole tdat --json --weight=2 events 10
	is_json out '.result.bins == [1, 1, 2, 0, 2]'
	expect 0 longpole tdat --json --where=2=7 events 10
	is_json out '.result.bins == [0, 0, 0, 0, 0] and .result.events == 0'
}

# All processes together: what they map with MAP_SHARED is one memory, whoever maps it where; what has the same address in a fork's parent and
# child is two.
test_memory_processes_together() {
	cat >together.c <<-'END'
		#include <fcntl.h>
		#include <stdlib.h>
		#include <sys/mman.h>
		#include <sys/wait.h>
		#include <unistd.h>
		enum { PAGE = 4096, LINES = 20, OWN = 30, FILE_LINES = 7 };
		static volatile char own[PAGE] __attribute__((aligned(4096)));
		static volatile char *map_file(int pages_before)
		{
			mmap(0, (size_t)pages_before * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* elsewhere */
			int fd = open("file", O_RDWR);
			volatile char *p = mmap(0, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
			close(fd);
			return p;
		}
		int main(int argc, char **argv)
		{
			if (argc > 1) { /* after exec: stores to what the first read, by another mapping */
				volatile char *file = map_file(100);
				for (int i = 0; i < FILE_LINES; i++)
					file[PAGE + 64 * i] = 2;
				return 0;
			}
			volatile char *shared = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
			volatile char *file = map_file(1);
			int sum = 0;
			for (int i = 0; i < FILE_LINES; i++)
				sum += file[PAGE + 64 * i];
			for (int i = 0; i < OWN; i++)
				own[64 * i] = 1;
			if (!fork()) {
				for (int i = 0; i < LINES; i++)
					shared[64 * i] = 1;
				for (int i = 0; i < OWN; i++)
					own[64 * i] = 2;
				exit(0);
			}
			wait(0);
			for (int i = 0; i < LINES; i++)
				sum += shared[64 * i];
			for (int i = 0; i < OWN; i++)
				sum += own[64 * i];
			if (!fork())
				execl(argv[0], argv[0], "again", (char *)0);
			wait(0);
			return sum != LINES + OWN;
		}
	END
	head -c 8192 /dev/zero >file
	longpole cc -O1 -g together.c -o together 2>err || skip "longpole cc does not build here: $(head -c 200 err)"
	expect 0 longpole record -q --level=3 -o together.lpt ./together
	expect 0 longpole ciat --json --process=all together.lpt
	is_json out '.source.processes | length >= 3 and all(.[]; .shown)'
	# 20 + 7 bytes are stored to by one and loaded by the other; no byte of own[] is shared
	is_json out '.result.usage.shared_data_accesses == 2 * 27'
	# in the order of fork, wait and exec: the parent loads what its child stored; the next one stores to what the parent had loaded
	is_json out '.result.total.all | .raw == 20 and .war == 7 and .waw == 0'
	# a processor each: all of it misses twice; own[] in two processes, and the parent has its lines still
	expect 0 longpole cdat --json --process=all --set=processors=4 together.lpt
	is_json out '.result.total.data | .misses >= 2 * 27 + 2 * 30 and .misses < 2 * 27 + 2 * 30 + 40 and .local_cache == 27'
	expect 0 longpole ciat --process=all -i 2 together.lpt
	has out 'processes were interleaved' 'of 3 processes'
	expect 0 longpole ciat --json --process=1 together.lpt
	is_json out '.result.usage.shared_data_accesses == 0'
	# one process is itself
	longpole record -q --level=3 -o alone.lpt ./together again && longpole ciat --json --process=all alone.lpt >out
	is_json out '.source.processes | length == 1'
	expect 2 longpole ciat --process=some together.lpt
}

# A recording of several processes: each by its number or pid; what is not shown is named.
test_memory_processes() {
	cat >family.c <<-'END'
		#include <stdlib.h>
		#include <string.h>
		#include <sys/mman.h>
		#include <sys/wait.h>
		#include <unistd.h>
		static volatile char own[64 * 100];
		/* touches so many lines */
		static void touch(int lines)
		{
			for (int i = 0; i < lines; i++)
				own[64 * i] = 1;
		}
		int main(int argc, char **argv)
		{
			volatile int *shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
			if (argc > 1) {
				touch(50);
				return 0;
			}
			touch(10);
			if (!fork()) {
				for (int i = 0; i < 500; i++)
					shared[i] = i;
				exit(0);
			}
			wait(0);
			if (!fork())
				execl(argv[0], argv[0], "again", (char *)0);
			wait(0);
			int sum = 0;
			for (int i = 0; i < 700; i++)
				sum += shared[i];
			return sum != 500 * 499 / 2;
		}
	END
	longpole cc -O1 -g family.c -o family 2>err || skip "longpole cc does not build here: $(head -c 200 err)"
	expect 0 longpole record -q --level=3 -o family.lpt ./family
	expect 0 longpole ciat --json family.lpt
	is_json out '.source.processes | length >= 3 and ([.[] | select(.shown)] | length) == 1'
	is_json out '.source.processes as $p | ($p | max_by(.stream_bytes).stream_bytes) == ($p[] | select(.shown).stream_bytes)'
	jq -c '[.source.processes[].process]' out >numbers
	local child pid
	child=$(jq '.[1]' numbers)
	pid=$(jq ".source.processes[] | select(.process == $child).pid" out)
	expect 0 longpole ciat family.lpt
	has out 'after fork or exec' '--process='
	# The child's 500 stores, and nothing of the parent's 700 loads.
	expect 0 longpole ciat --json --process="$child" family.lpt
	is_json out ".source.processes[] | select(.process == $child).shown"
	is_json out '.result.usage | .data_bytes >= 2000 and .data_bytes < 2200 and .data_accesses < 550'
	jq -S .result.total out >by_number
	expect 0 longpole ciat --json --process="$pid" family.lpt
	jq -S .result.total out | cmp -s - by_number || fail "the pid means another process"
	expect 0 longpole cdat --json --process="$(jq '.[-1]' numbers)" family.lpt
	is_json out '.result.total.data.misses | . >= 50 and . < 100'
	expect 0 longpole slack --json --process="$child" family.lpt
	expect 2 longpole ciat --process=4000000000 family.lpt
	has err 'no process is' 'pid'
	expect 2 longpole ciat --process=x family.lpt
	make_smait run.2
	expect 2 longpole ciat --process=2 run.2
	has err 'does not tell processes apart'
	expect 2 longpole ciat --process=2 -- ./family
	has err 'record the program first'
}
