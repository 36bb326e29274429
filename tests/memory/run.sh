#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [NAME...] - memory streams of programs that `longpole cc` builds.
#
# Truth: a program runs one instruction at a time under an oracle that computes every access from the
# registers; what was recorded of the same run must be the same, access by access. Behaviour: output
# and exit status are those of the program built without us.
set -uo pipefail
export COLUMNS=400 # sentences are looked for whole
here=$(dirname "$(readlink -f "$0")")
: "${LONGPOLE_SOURCE:=$(readlink -f "$here/../..")}" "${LONGPOLE_BUILD:=$LONGPOLE_SOURCE/build}"
: "${LONGPOLE:=$LONGPOLE_BUILD/src/cmd/longpole}"
oracle=$LONGPOLE_BUILD/tests/memory/memory-oracle
accesses=$LONGPOLE_BUILD/tests/memory/memory-accesses
export TMPDIR
TMPDIR=$(mktemp -d)
cd "$TMPDIR" || exit 2
trap 'rm -rf "$TMPDIR"' EXIT
unset LONGPOLE_CC LONGPOLE_CXX LONGPOLE_FC LONGPOLE_CC_LEVEL LONGPOLE_CC_PIC LONGPOLE_CC_VERBOSE
wanted=" $* "

result() { # NAME, what is wrong
	if [[ -z $2 ]]; then printf 'ok %s\n' "$1"; else printf 'not ok %s: %s\n' "$1" "${2//$'\n'/; }"; fi
}
selected() { [[ $wanted == '  ' || $wanted == *" $1 "* ]]; }
record() { timeout 60 "$LONGPOLE" record -q --level "${level:-3}" --sample-hz 0 --no-switches "$@" 2>err || { echo "exit status $?: $(tail -n 2 err)"; false; }; }
has_compiler() { command -v "$1" >/dev/null; }

# can_trace: the kernel lets us single-step a child.
can_trace() { "$oracle" probe ./probe_program >/dev/null 2>&1; }

# truth NAME COMPILER SOURCE OPTION... - in step with the oracle.
truth() {
	local name=$1 compiler=$2 source=$3 why=
	shift 3
	selected "$name" || return 0
	if ! has_compiler "$compiler"; then
		echo "skip $name: no $compiler"
		return
	fi
	LONGPOLE_CC=$compiler "$LONGPOLE" cc -w "$@" -o "$name" "$here/$source" -lm 2>cc.err || why="does not build: $(head -n 3 cc.err)"
	if [[ -z $why ]]; then
		printf '#!/bin/sh\nexec %s %s.oracle ./%s\n' "$oracle" "$name" "$name" >"$name.sh"
		chmod +x "$name.sh"
		why=$(record -o "$name.lpt" -- "./$name.sh" >/dev/null)
	fi
	if [[ -z $why ]]; then
		"$accesses" -j "$name.lpt" 0 >"$name.recorded" 2>err || why="does not decode: $(cat err)"
		cmp -s "$name.oracle" "$name.recorded" ||
			why+=" $(diff "$name.oracle" "$name.recorded" | grep -c '^[<>]') accesses differ, the first: $(diff "$name.oracle" "$name.recorded" | sed -n 2p)"
		[[ $(wc -l <"$name.oracle") -gt 100 ]] || why+=" the oracle saw too little"
	fi
	result "$name" "$why"
}

# same NAME COMMAND NATIVE_COMPILER SOURCES OPTION... - recorded and not, it behaves as when built without us.
same() {
	local name=$1 command=$2 native=$3 sources=$4 why='' source files=()
	shift 4
	selected "$name" || return 0
	if ! has_compiler "$native"; then
		echo "skip $name: no $native"
		return
	fi
	for source in $sources; do files+=("$here/$source"); done
	"$native" -w "$@" -o "$name.native" "${files[@]}" -lm -pthread 2>cc.err || why="native: $(head -n 2 cc.err)"
	LONGPOLE_CC=$native LONGPOLE_CXX=$native "$LONGPOLE" "$command" -w "$@" -o "$name" "${files[@]}" -lm -pthread 2>cc.err ||
		why="does not build: $(head -n 3 cc.err)"
	if [[ -z $why ]]; then
		./"$name.native" >expected
		timeout 20 ./"$name" >said || why="by itself: exit status $?"
		cmp -s expected said || why+=" by itself it says: $(head -n 1 said)"
		why+=$(record -o "$name.lpt" -- "./$name" 3>&1 >said)
		cmp -s expected said || why+=" recorded it says: $(head -n 1 said)"
		"$accesses" "$name.lpt" 0 >recorded 2>err || why+=" does not decode: $(cat err)"
		[[ -s recorded ]] || why+=" nothing was recorded"
	fi
	result "$name" "$why"
}

gcc -o probe_program -x c - <<<'int main(void) { return 0; }' 2>/dev/null
for option in -O0 -O2 -O3; do
	truth "truth-basics$option" gcc basics.c "$option" -fno-builtin-memcpy
	ORACLE_STEP=1 truth "truth-hard$option" gcc hard.c "$option"
done
truth truth-basics-pic gcc basics.c -O2 -fPIC -pie
truth truth-basics-static gcc basics.c -O2 -static
truth truth-vectors gcc vectors.c -O3 -ffast-math
truth truth-clang clang-14 basics.c -O2
truth truth-clang-O0 clang-14 basics.c -O0

same exceptions-O0 c++ g++ 'exceptions.cc exceptions2.cc' -O0
same exceptions-O2 c++ g++ 'exceptions.cc exceptions2.cc' -O2 -g
same exceptions-clang c++ clang++-14 'exceptions.cc exceptions2.cc' -O2
same processes cc gcc processes.c -O2
same crowd cc gcc crowd.c -O1
same tasks c++ g++ tasks.cc -O1 -fopenmp
same signals cc gcc signals.c -O1 -std=c99 -D_XOPEN_SOURCE=600
grep -qw avx2 /proc/cpuinfo && same vectors-native cc gcc vectors.c -O3 -ffast-math -march=native

# watched NAME SOURCE OPTION... - Valgrind's tool watches the run that the program's own recording code records: all accesses
# and jumps of the program's own instructions are the same, and how many instructions there were, thread by thread.
watched() {
	local name=$1 source=$2 why='' thread
	shift 2
	selected "$name" || return 0
	if ! has_compiler valgrind || [[ ! -x $LONGPOLE_BUILD/valgrind/longpole-amd64-linux ]]; then
		echo "skip $name: Valgrind's tool is not here"
		return
	fi
	"$LONGPOLE" cc -w "$@" -o "$name" "$here/$source" -lm -lpthread 2>err || why=$(head -n 3 err)
	printf '#!/bin/sh\nexec "%s" record -q --level 3 --recorder=valgrind -o %s.seen.lpt -- ./%s\n' "$LONGPOLE" "$name" "$name" >"$name.sh"
	chmod +x "$name.sh"
	[[ -n $why ]] || why=$(record -o "$name.lpt" -- "./$name.sh" >"$name.said")
	[[ -n $why || $(./"$name") == "$(cat "$name.said")" ]] || why="says something else under Valgrind"
	for thread in 0 1 2 3; do
		[[ -z $why ]] || break
		"$accesses" -j "$name.lpt" "$thread" 2>>err | sha256sum >>"$name.recorded"
		"$accesses" -j "$name.seen.lpt" "$thread" "$name" 2>>err | tee -a "$name.all" | sha256sum >>"$name.seen"
	done
	[[ -n $why ]] || cmp -s <(sort "$name.recorded") <(sort "$name.seen") || why="the accesses differ"
	[[ -n $why ]] || (($(wc -l <"$name.all") > 100)) || why="Valgrind saw too little: $(tail -n 1 err)"
	result "$name" "$why"
}
watched watched-basics basics.c -O2
watched watched-vectors vectors.c -O3 -ffast-math
watched watched-threads threads.c -O2
watched watched-dropped dropped.c -O2
watched watched-deep deep.c -O1
grep -qw fma /proc/cpuinfo && watched watched-fused fused.c -O1
# Instructions that write some bytes of a vector register (Valgrind's tool writes others, too), and who looks at it then.
watched watched-doubles doubles.c -O1
doubles() {
	local why=''
	selected doubles || return 0
	if ! has_compiler valgrind || [[ ! -x $LONGPOLE_BUILD/valgrind/longpole-amd64-linux ]]; then
		echo "skip doubles: Valgrind's tool is not here"
		return
	fi
	gcc -w -O1 -o doubles "$here/doubles.c" && ./doubles saved >doubles.said || why="is wrong by itself"
	[[ -n $why ]] || "$LONGPOLE" record -q --level 3 --recorder=valgrind -o doubles.lpt -- ./doubles found >doubles.seen 2>err || why=$(head -n 3 err)
	[[ -n $why ]] || cmp -s doubles.said doubles.seen || why="other registers: $(diff doubles.said doubles.seen | sed -n '2p;4p')"
	(($(grep -c '^signal' doubles.said) == 6 && $(wc -l <doubles.said) > 170)) || why+=" said too little"
	result doubles "$why"
}
doubles

# The same of elements that a mask names: they are said as pieces of any length, of which here each word counts. (For an element that is
# not named Valgrind loads at the stack pointer.)
masks() {
	local why='' which
	selected masks || return 0
	if ! grep -qw avx2 /proc/cpuinfo || ! has_compiler valgrind || [[ ! -x $LONGPOLE_BUILD/valgrind/longpole-amd64-linux ]]; then
		echo "skip masks: no AVX2, or Valgrind's tool is not here"
		return
	fi
	"$LONGPOLE" cc -w -O3 -ffast-math -mavx2 -o masks "$here/vectors.c" 2>err || why=$(head -n 3 err)
	[[ ! -s err ]] || why+=" $(head -n 1 err)"
	printf '#!/bin/sh\nexec "%s" record -q --level 3 --recorder=valgrind -o seen.lpt -- ./masks\n' "$LONGPOLE" >masks.sh
	chmod +x masks.sh
	[[ -n $why ]] || why=$(record -o masks.lpt -- ./masks.sh 3>&1 >/dev/null)
	for which in masks seen; do
		"$accesses" $which.lpt 0 masks 2>>err | grep -v '^L 1ff[0-9a-f]* 4$' | while read -r how at bytes; do
			for ((i = 0; i < bytes; i += 4)); do echo "$how $((16#$at + i))"; done
		done >$which.words
	done
	[[ -n $why ]] || cmp -s masks.words seen.words || why="the accesses differ: $(diff masks.words seen.words | sed -n 2p)"
	[[ -n $why ]] || (($(wc -l <seen.words) > 500)) || why="Valgrind saw too little: $(tail -n 1 err)"
	result masks "$why"
}
masks

# Instructions that compute the same address have one word of it, and those that only look so have not.
slots() {
	local why='' few many
	selected slots || return 0
	if ! has_compiler valgrind || [[ ! -x $LONGPOLE_BUILD/valgrind/longpole-amd64-linux ]]; then
		echo "skip slots: Valgrind's tool is not here"
		return
	fi
	gcc -w -O1 -o slots "$here/slots.c" || why="does not build"
	words() { "$LONGPOLE" record --level 3 --recorder=valgrind -o slots.lpt -- ./slots "$1" 2>&1 | sed -n 's/.* threads\{0,1\}, \([0-9,]*\) words.*/\1/p' | tr -d ,; }
	few=$(words 2000)
	"$accesses" slots.lpt 0 2>err | grep -E '^[LSA] 1000[0-9a-f]{5} ' >slots.seen
	many=$(words 12000)
	[[ -n $why ]] || cmp -s slots.seen <(./slots 2000 list) || why="the accesses differ: $(diff slots.seen <(./slots 2000 list) | sed -n 2p)"
	# in a round six addresses and some blocks (9 words; 14 when only constants were looked through)
	[[ -n $why ]] || (((many - few) / 10000 <= 12)) || why="$few and $many words"
	result slots "$why"
}
slots

# Repeated string instructions, which VEX makes loops of and unrolls, are there once.
strings() {
	local why='' bytes begin
	selected strings || return 0
	if ! has_compiler valgrind || [[ ! -x $LONGPOLE_BUILD/valgrind/longpole-amd64-linux ]]; then
		echo "skip strings: Valgrind's tool is not here"
		return
	fi
	gcc -w -O1 -no-pie -o strings "$here/strings.c" || why="does not build"
	[[ -n $why ]] || "$LONGPOLE" record -q --level 3 --recorder=valgrind -o strings.lpt -- ./strings >/dev/null 2>err || why=$(head -n 3 err)
	# (of the two arrays; R and L load, W and S store)
	begin=$(nm strings | sed -n 's/^0*\([0-9a-f]*\) b \(from\|to\)$/\1/p' | sort | head -n 1)
	bytes=$("$accesses" strings.lpt 0 2>>err | awk -v begin="$begin" -v end="$(printf %x $((16#$begin + 8192)))" \
		'length($2) == length(begin) && $2 "" >= begin "" && $2 "" < end "" { n[$1 ~ /[RL]/] += $3 } END { print n[1], n[0] }')
	[[ -n $why || $bytes == '44850 403650' ]] || why="bytes loaded and stored: $bytes"
	result strings "$why"
}
strings

# A handler under Valgrind sees what the registers were.
handler() {
	local why=''
	selected handler || return 0
	if ! has_compiler valgrind || [[ ! -x $LONGPOLE_BUILD/valgrind/longpole-amd64-linux ]]; then
		echo "skip handler: Valgrind's tool is not here"
		return
	fi
	gcc -w -O1 -o handler "$here/handler.c" && ./handler >/dev/null || why="is wrong by itself"
	[[ -n $why ]] || "$LONGPOLE" record -q --level 3 --recorder=valgrind -o handler.lpt -- ./handler >handler.said 2>err ||
		why="sees other registers: $(cat handler.said err)"
	result handler "$why"
}
handler

# What came before an exec is in the trace.
execs() {
	local why='' nr
	selected execs || return 0
	if ! has_compiler valgrind || [[ ! -x $LONGPOLE_BUILD/valgrind/longpole-amd64-linux ]]; then
		echo "skip execs: Valgrind's tool is not here"
		return
	fi
	gcc -w -O1 -no-pie -o execs "$here/execs.c" || why="does not build"
	[[ -n $why ]] || "$LONGPOLE" record -q --level 3 --recorder=valgrind -o execs.lpt -- ./execs >/dev/null 2>err || why=$(head -n 3 err)
	nr=$("$accesses" execs.lpt 0 2>>err | grep -Ec "^S 40[0-9a-f]{4} ") # (where programs that are not PIE have their data)
	[[ -n $why ]] || ((nr >= 1000)) || why="$nr stores of 1000"
	result execs "$why"
}
execs

# Words that Valgrind's tool leaves to the recorder, which it does where there are two processors, are the same as those that it encodes
# itself; those of a killed program, too, but for what was in its buffer. A child does not write into what is its parent's.
left() {
	local why='' only first how program
	selected left || return 0
	if ! has_compiler valgrind || [[ ! -x $LONGPOLE_BUILD/valgrind/longpole-amd64-linux ]]; then
		echo "skip left: Valgrind's tool is not here"
		return
	fi
	gcc -w -O1 -o slots "$here/slots.c" && gcc -w -O1 -no-pie -o killed "$here/killed.c" || why="does not build"
	./slots 60000 list >slots.list
	first=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*\([0-9]*\).*/\1/p' /proc/self/status)
	for how in one all; do
		only=(taskset -c "$first")
		[[ $how == one ]] || only=()
		for program in 'slots 60000' killed; do
			"${only[@]}" "$LONGPOLE" record --level 3 --recorder=valgrind -o left.lpt -- ./$program >/dev/null 2>left.said
			if [[ $how == one ]] || (($(nproc) < 2)); then
				grep -q 'the recorder encoded' left.said && why+=" $how: $program: words were left: $(grep words left.said)"
			else
				grep -q 'the recorder encoded [1-9]' left.said || why+=" $how: $program: no words were left: $(grep words left.said)"
			fi
			"$accesses" left.lpt 0 >left.accesses 2>err || why+=" $how: $program: $(tail -n 1 err)"
			case $program in
			slots*) cmp -s <(grep -E '^[LSA] 1000[0-9a-f]{5} ' left.accesses) slots.list || why+=" $how: the accesses differ" ;;
			*) # one after the other, all but those of a buffer; three words each
				grep -E "^S $(nm killed | sed -n 's/^0*\([0-9a-f]*\)[0-9a-f]\{4\} b place$/\1/p')[0-9a-f]{4} " left.accesses | awk '{ print substr($2, length($2) - 3) }' >left.places
				(($(wc -l <left.places) > 200000 - 16384 / 3)) || why+=" $how: $(wc -l <left.places) stores of 200000"
				cmp -s left.places <(awk -v nr="$(wc -l <left.places)" 'BEGIN { for (i = 0; i < nr; i++) printf "%04x\n", i % 4096 * 8 }') || why+=" $how: stores are missing, or others are there"
				grep -qE "^S $(nm killed | sed -n 's/^0*\([0-9a-f]*\)[0-9a-f]\{4\} b other$/\1/p')[0-9a-f]{4} " left.accesses && why+=" $how: the child is there"
				;;
			esac
		done
	done
	result left "$why"
}
left

# The compiler's own calls: Valgrind's tool watches the same run. What both saw of the program's objects, by whatever code, is the same.
tsan() { # NAME COMPILER OPTION...
	local name=$1 compiler=$2 why='' objects='^[LSA] 1000[0-9a-f]{5} '
	shift 2
	selected "$name" || return 0
	if ! has_compiler valgrind || [[ ! -x $LONGPOLE_BUILD/valgrind/longpole-amd64-linux ]] || ! has_compiler "$compiler"; then
		echo "skip $name: no $compiler, or Valgrind's tool is not here"
		return
	fi
	LONGPOLE_CC=$compiler "$LONGPOLE" cc --recorder=tsan -w "$@" -o "$name" "$here/tsan.c" -lpthread 2>err || why=$(head -n 3 err)
	printf '#!/bin/sh\nexec "%s" record -q --level 3 --recorder=valgrind -o %s.seen.lpt -- ./%s\n' "$LONGPOLE" "$name" "$name" >"$name.sh"
	chmod +x "$name.sh"
	[[ -n $why ]] || why=$(level=2 record -o "$name.lpt" -- "./$name.sh" >"$name.said")
	[[ -n $why || $(cat "$name.said") == '0 9' ]] || why="atomic operations go wrong: $(cat "$name.said")"
	"$accesses" "$name.lpt" 0 2>>err | grep -E "$objects" >"$name.recorded"
	"$accesses" "$name.seen.lpt" 0 2>>err | grep -E "$objects" >"$name.seen"
	[[ -n $why ]] || cmp -s "$name.recorded" "$name.seen" || why="the accesses differ: $(diff "$name.recorded" "$name.seen" | sed -n 2p)"
	[[ -n $why ]] || (($(grep -c '^A' "$name.seen") == 6 && $(wc -l <"$name.seen") > 129600)) || why="Valgrind saw too little: $(tail -n 1 err)"
	# Known counts: a matrix of 40x40 times another; what two threads say to each other by turns, in the order of recorded times
	# (2 x 50 turns and messages; 2 x 1000 words for main); the copied structure.
	[[ -n $why ]] || "$LONGPOLE" ciat --json "$name.lpt" >"$name.json" 2>>err || why=$(cat err)
	[[ -n $why ]] || jq -e '.result.functions[] | select(.name == "multiply") | .loads == 128000 and .stores == 1600' "$name.json" >/dev/null ||
		why="multiply: $(jq -c '.result.functions' "$name.json")"
	[[ -n $why ]] || why=$(level=2 record -o turns.lpt -- "./$name" threads 3>&1 >"$name.said")
	[[ -n $why || $(cat "$name.said") == '100 999000 0 9' ]] || why="with threads it says: $(cat "$name.said")"
	[[ -n $why ]] || "$LONGPOLE" ciat --order=time --json turns.lpt >turns.json 2>>err || why=$(cat err)
	# (clang reads two words at once)
	[[ -n $why ]] || jq -e '[.result.phases[].all.raw] | .[1] >= 190 and .[1] <= 210 and (.[2] == 2001 or .[2] == 1001)' turns.json >/dev/null ||
		why="values passed on, by time: $(jq -c '[.result.phases[].all.raw]' turns.json)"
	result "$name" "$why"
}
tsan tsan-gcc-O0 gcc -O0
tsan tsan-gcc-O2 gcc -O2
tsan tsan-clang-O2 clang-14 -O2
export LONGPOLE_CC_RECORDER=tsan
level=2 same tsan-exceptions c++ g++ 'exceptions.cc exceptions2.cc' -O2
level=2 same tsan-processes cc gcc processes.c -O2
level=2 same tsan-crowd cc gcc crowd.c -O1
unset LONGPOLE_CC_RECORDER

# What is analysed while it is recorded is what the recorded trace gives.
meanwhile() {
	local why='' what
	selected meanwhile || return 0
	"$LONGPOLE" cc -w -O2 -g -o shares "$here/threads.c" -lpthread 2>err || why=$(cat err)
	why+=$(record -o shares.lpt -- ./shares 3>&1 >shares.said)
	"$LONGPOLE" ciat --json shares.lpt >of.file 2>>err || why+=" $(cat err)"
	timeout 60 "$LONGPOLE" record --into=ciat ./shares >said 2>of.text || why+=" --into: exit status $?: $(tail -n 2 of.text)"
	cmp -s said shares.said || why+=" the program says something else"
	timeout 60 "$LONGPOLE" ciat --json -- ./shares >/dev/null 2>of.run || why+=" exit status $?: $(tail -n 2 of.run)"
	for what in '.result.usage | {accesses, data_accesses, code_accesses, data_bytes, code_bytes, shared_bytes, touched_bytes}' \
		'.result.phases | length'; do
		[[ $(jq -c "$what" of.file 2>>err) == "$(jq -c "$what" of.run 2>>err)" ]] || why+=" they differ: $(jq -c "$what" of.file of.run 2>&1)"
	done
	grep -q '1 parallel' of.text || why+=" no phases"
	grep -Eq '^ +[0-9]+ +1 +[0-9]+ +[1-9][0-9]* +[0-9]+  turns$' of.text || why+=" a word that all threads store to is not named: $(head -n 30 of.text)"
	grep -q -- '^NEXT  longpole cdat .* -- ./shares$' of.text || why+=" the next command is not for a program: $(tail -n 1 of.text)"
	timeout 60 "$LONGPOLE" cdat --set=nodes=2 -- ./shares 2>&1 >/dev/null | grep -q 'data accesses miss' || why+=" cdat says nothing"
	timeout 60 "$LONGPOLE" ciat --threads=2 -- ./shares >/dev/null 2>err
	[[ $? == 125 ]] || why+=" too many threads are no error of ours: $(cat err)"
	printf '#!/bin/sh\n./shares\nexit 7\n' >seven.sh
	chmod +x seven.sh
	timeout 60 "$LONGPOLE" ciat -- ./seven.sh >/dev/null 2>err
	[[ $? == 7 ]] || why+=" the exit status is not the program's"
	result meanwhile "$why"
}
meanwhile

# Threads run side by side by whatever library they were begun and joined: what one stores the other loads.
begun() {
	local why='' way from
	selected begun || return 0
	if ! has_compiler g++; then
		echo "skip begun: no g++"
		return
	fi
	for way in 0 1 2 3 4; do
		[[ -z $why ]] || break
		"$LONGPOLE" c++ -O1 -g -DWAY=$way -o begun "$here/begun.cc" -lpthread 2>cc.err || why="does not build: $(head -n 3 cc.err)"
		[[ -n $why ]] || why=$(record -o begun.lpt -- ./begun 3>&1 >/dev/null)
		[[ -n $why ]] || "$LONGPOLE" ciat --json begun.lpt >of.file 2>err || why="ciat: $(cat err)"
		[[ -n $why ]] || timeout 60 "$LONGPOLE" ciat --json -- ./begun >/dev/null 2>of.run || why="ciat -- ./begun: $(tail -n 2 of.run)"
		for from in file run; do
			[[ -n $why ]] || jq -e '.result | [.phases[].phase] == ["serial", "parallel", "serial"] and .total.all.raw > 10000' of.$from >/dev/null ||
				why="way $way, $from: $(jq -c '.result | [.phases[].phase], .total.all.raw' of.$from)"
		done
	done
	result begun "$why"
}
begun

# The same of OpenMP's loops: each schedule has a function of its own in gcc's library, and clang's are others.
loops() {
	local why='' compiler schedule
	selected loops || return 0
	for compiler in gcc clang; do
		for schedule in static dynamic,1 guided,1 runtime ''; do
			if ! "$compiler" -fopenmp ${schedule:+"-DSCHEDULE=$schedule"} -o loops "$here/loops.c" 2>cc.err; then
				echo "skip loops: no $compiler with OpenMP"
				continue 2
			fi
			LONGPOLE_CC=$compiler "$LONGPOLE" cc -O1 -g -fopenmp ${schedule:+"-DSCHEDULE=$schedule"} -o loops "$here/loops.c" 2>cc.err || why="does not build: $(head -n 3 cc.err)"
			[[ -n $why ]] || why=$(OMP_SCHEDULE=dynamic,1 record -o loops.lpt -- ./loops 3>&1 >/dev/null)
			[[ -n $why ]] || "$LONGPOLE" ciat --json loops.lpt >loops.json 2>err || why="ciat: $(cat err)"
			[[ -n $why ]] || jq -e '.result | [.phases[].phase] == ["serial", "parallel", "serial"] and .total.all.raw > 10000' loops.json >/dev/null ||
				why="$compiler, ${schedule:-sections}: $(jq -c '.result | [.phases[].phase], .total.all.raw' loops.json)"
			[[ -z $why ]] || break 2
		done
	done
	result loops "$why"
}
loops

# Whole-program optimisation and static linking leave nothing out.
links() {
	local why='' how
	selected links || return 0
	for how in 'gcc -flto' 'clang-14 -flto' 'gcc -static-pie'; do
		has_compiler "${how% *}" || continue
		# shellcheck disable=SC2086
		LONGPOLE_CC=${how% *} "$LONGPOLE" cc -w -O1 ${how#* } -o linked "$here/basics.c" 2>err || why+=" $how: $(tail -n 1 err)"
		gcc -w -O1 -o linked.native "$here/basics.c"
		[[ $(./linked) == "$(./linked.native)" ]] || why+=" $how: says something else"
		why+=$(record -o linked.lpt -- ./linked 3>&1 >/dev/null)
		"$accesses" linked.lpt 0 >recorded 2>err || why+=" $how: $(cat err)"
		[[ $(wc -l <recorded) -gt 100 ]] || why+=" $how: only $(wc -l <recorded) accesses"
	done
	# What has the runtime library, but no code that was rewritten.
	gcc -w -O1 -c -o plain.o "$here/basics.c" && "$LONGPOLE" cc -o plain plain.o && record -o plain.lpt -- ./plain >/dev/null
	local status=0
	"$LONGPOLE" ciat plain.lpt >/dev/null 2>err || status=$?
	[[ $status == 2 ]] || why+=" without any rewritten code: exit status $status"
	grep -q 'no thread' err || why+=" without any rewritten code: $(cat err)"
	result links "$why"
}
links

# Borrowed registers: everything in a build that the compiler was not told about r10 and r11.
borrowing() {
	local why=
	selected borrowing || return 0
	printf '#include "%s"\n' "$here/basics.c" >borrowing.c
	"$LONGPOLE" cc -w -O2 -fcall-used-r10 -fcall-used-r11 -fno-ipa-ra -o borrowing borrowing.c 2>err || why=$(cat err)
	gcc -w -O2 -o borrowing.native borrowing.c
	[[ $(./borrowing 2>&1) == $(./borrowing.native) ]] || why+=" says something else"
	result borrowing "$why"
}
borrowing

# A shared library, recorded, with a program, recorded; linked, and loaded while it runs.
library() {
	local why='' option program
	selected library || return 0
	for option in -O0 -O2; do
		"$LONGPOLE" cc "$option" -fPIC -shared -Wl,-z,defs -o libtold.so "$here/library.c" 2>err &&
			"$LONGPOLE" cc "$option" -o uses "$here/uses_library.c" ./libtold.so -Wl,-rpath,. 2>err &&
			"$LONGPOLE" cc "$option" -DLOADED -rdynamic -o loads "$here/uses_library.c" 2>err || why="$option: $(tail -n 2 err)"
		for program in uses loads; do
			[[ $(./$program) == '281875 8' ]] || why+=" $option: $program says $(./$program)"
			why+=$(record -o uses.lpt -- ./$program 3>&1 >/dev/null)
			"$accesses" uses.lpt 0 >recorded 2>err || why+=" $option: $(cat err)"
			[[ $(wc -l <recorded) -gt 1500 ]] || why+=" $option: $program: only $(wc -l <recorded) accesses"
		done
	done
	result library "$why"
}
library

# Markers switch the detail off and on.
markers() {
	local why=
	selected markers || return 0
	"$LONGPOLE" cc -O1 -I"$LONGPOLE_SOURCE/include" -o markers "$here/markers.c" 2>err || why=$(cat err)
	why+=$(record -o markers.lpt -- ./markers 3>&1)
	"$accesses" markers.lpt 0 >recorded 2>err || why+=$(cat err)
	local stores
	stores=$(grep -c '^S .* 4$' recorded)
	((stores >= 200 && stores < 300)) || why+=" $stores stores instead of 200"
	result markers "$why"
}
markers

# Threads that nobody joins, each on the stack, the heap and the thread data of one before it, are not side by side; those that were, are.
detached() {
	local why='' how moves
	selected detached || return 0
	for how in 1 2 3; do
		"$LONGPOLE" cc -w -O1 -DWAIT=$how -o detached "$here/detached.c" -pthread 2>err || why+=" $how: $(head -n 3 err)"
		why+=$(record -o detached.lpt -- ./detached 3>&1)
		for moves in "$("$LONGPOLE" ciat detached.lpt)" "$("$LONGPOLE" ciat -- ./detached 2>&1)"; do
			moves=$(sed -n 's/^ *\([0-9]*\) with news.*, \([0-9]*\) without.*/\1 \2/p' <<<"$moves")
			moves=$((${moves/ /+}))
			if [[ $how == 3 ]]; then
				((moves > 100000)) || why+=" $how: $moves line moves where each increment of four threads is one"
			else
				((moves && moves < 100)) || why+=" $how: $moves line moves of 12 threads one after the other"
			fi
		done
	done
	result detached "$why"
}
detached

source "$here/waits.sh"

# Under Valgrind one thread runs at a time, and they hardly share; by pseudo clocks they do as if they ran side by side.
pseudo() {
	local why='' order moves
	selected pseudo || return 0
	if ! has_compiler valgrind || [[ ! -x $LONGPOLE_BUILD/valgrind/longpole-amd64-linux ]]; then
		echo "skip pseudo: no Valgrind"
		return
	fi
	gcc -w -O1 -DWAIT=3 -o pseudo "$here/detached.c" -pthread 2>err || why=$(head -n 3 err)
	[[ -n $why ]] || why=$(record --recorder=valgrind -o pseudo.lpt -- ./pseudo 3>&1)
	for order in '' --order=time --order=pseudo; do
		"$LONGPOLE" ciat $order pseudo.lpt >said 2>err || why+=" $order: $(head -n 2 err)"
		moves=$(sed -n 's/^ *\([0-9]*\) with news.*, \([0-9]*\) without.*/\1 \2/p' said)
		moves=$((${moves/ /+}))
		if [[ $order == *pseudo ]]; then
			((moves > 100000)) || why+=" $order: $moves line moves where each increment of four threads is one"
			grep -q 'In fact one ran at a time' said || why+=" $order: how it knows is not said"
		else
			((moves < 10000)) || why+=" $order: $moves line moves, though one thread ran at a time"
			grep -q 'recorded one: one thread ran at a time' said || why+=" $order: how it knows is not said"
		fi
	done
	result pseudo "$why"
}
pseudo

# What is not in the report of a program that was killed, or of a file that was cut, is said.
killed() {
	local why='' size
	selected killed || return 0
	"$LONGPOLE" cc -w -O1 -o killed "$here/killed.c" 2>err || why=$(head -n 3 err)
	timeout 60 "$LONGPOLE" record -q --level 3 -o killed.lpt -- ./killed >/dev/null 2>err
	[[ $? == 137 ]] || why+=" $(head -n 2 err)"
	"$LONGPOLE" ciat killed.lpt >said 2>&1
	grep -q 'Caution: 1 process was ended by a signal. What was recorded' said || why+=" of a trace it is not said"
	grep -Eq '"name": ?"killed"' <("$LONGPOLE" ciat --json killed.lpt) || why+=" nor in JSON"
	"$LONGPOLE" ciat -- ./killed >said 2>&1
	grep -q 'Caution: 1 process was ended by a signal. What was recorded' said || why+=" nor of one that is watched"
	size=$(stat -c %s killed.lpt)
	head -c $((size - 20)) killed.lpt >cut.lpt
	"$LONGPOLE" ciat cut.lpt >said 2>&1
	grep -q 'Caution: 1 trace has no end' said || why+=" that a file was cut is not said: $(head -n 2 said)"
	"$LONGPOLE" cc -w -O1 -DWAIT=1 -o whole "$here/detached.c" -pthread 2>err && record -o whole.lpt -- ./whole
	"$LONGPOLE" ciat whole.lpt | grep -E 'ended by a signal|has no end' && why+=" it is said of a whole one"
	result killed "$why"
}
killed

# Every way to allocate is a call record with its size and the line that asked, of either recorder; all is freed again.
heap() {
	local why='' how
	selected heap || return 0
	if ! has_compiler g++; then
		echo "skip heap: no g++"
		return
	fi
	"$LONGPOLE" c++ -w -g -O1 -o heap.rewritten "$here/heap.cc" 2>err && g++ -w -g -O1 -o heap.valgrind "$here/heap.cc" 2>>err || why=$(head -n 3 err)

	grep -n '//= ' "$here/heap.cc" | sed 's,^\([0-9]*\):.*//= \(.*\),\2 line \1,' >heap.expected
	for how in rewritten valgrind; do
		local options=()
		if [[ $how == valgrind ]]; then
			has_compiler valgrind && [[ -x $LONGPOLE_BUILD/valgrind/longpole-amd64-linux ]] || continue
			options=(--recorder=valgrind)
		fi
		[[ -n $why ]] || why=$(record "${options[@]}" -o heap.lpt -- ./heap.$how 3>&1 >/dev/null)
		"$LONGPOLE_BUILD/tests/memory/memory-calls" heap.lpt "heap.$how" >heap.calls 2>err || why+=" $how: $(cat err)"
		while read -r _ _ bytes site mapping; do
			echo "$bytes${mapping:+ mapping} line $(addr2line -e "heap.$how" "${site#*+}" | sed 's/.*://; s/ .*//')"
		done < <(grep " allocate .* heap.$how+" heap.calls) >heap.said
		diff heap.expected heap.said >&2 || why+=" $how: the allocations differ: $(diff heap.expected heap.said | sed -n 2p)"
		[[ $(grep -c ' release #' heap.calls) -ge $(wc -l <heap.expected) ]] || why+=" $how: not all are freed"
	done
	result heap "$why"
}
heap

# A region is all that a program wants of OpenMP.
region() {
	local why='' compiler
	selected region || return 0
	printf 'int n;\nint main(void)\n{\n#pragma omp parallel\n\t__atomic_fetch_add(&n, 1, 0);\n\treturn !n;\n}\n' >region.c
	for compiler in gcc clang; do
		"$compiler" -fopenmp -o region.native region.c 2>/dev/null || continue
		LONGPOLE_CC=$compiler "$LONGPOLE" cc -O2 -fopenmp -o region region.c 2>err || why+=" $compiler: $(head -n 3 err)"
		timeout 20 ./region || why+=" $compiler: exit status $?"
	done
	result region "$why"
}
region

# OpenMP: three threads, two regions, each with three barriers and a critical section.
regions() {
	local why='' region='begin_critical end_critical join' thread kind
	selected regions || return 0
	"$LONGPOLE" cc -w -O1 -fopenmp -o regions "$here/regions.c" 2>err || why=$(head -n 3 err)
	if grep -q gomp err; then
		echo "skip regions: no OpenMP"
		return
	fi
	export OMP_WAIT_POLICY=passive
	for thread in 0 1 2; do
		printf "6 $thread barrier 3\\n"
		printf "2 $thread %s\\n" $region
		[[ $thread != 0 ]] || echo '2 0 spawn 3'
	done >regions.calls
	for kind in -DCANCEL ''; do
		[[ -n $why ]] || "$LONGPOLE" cc -w -O1 -fopenmp $kind -o regions "$here/regions.c" 2>err || why=$(head -n 3 err)
		[[ -n $why ]] || why=$(record -o regions.lpt -- ./regions 3>&1 >/dev/null)
		"$LONGPOLE_BUILD/tests/memory/memory-calls" regions.lpt regions 2>>err | grep -Ev ' (allocate|release)' | sort | uniq -c |
			sed 's/^ *//' >regions.said
		cmp -s regions.calls regions.said || why+=" $kind $(cat regions.said)"
	done
	[[ $("$LONGPOLE" ciat --json regions.lpt 2>>err | jq -c '[.result.phases[].phase]') == '["serial","parallel","serial","parallel","serial"]' ]] || why+=" the phases differ"
	"$LONGPOLE" cdat --set=nodes=2 --set=processors=4 regions.lpt 2>>err | sed -n 2p | grep -q '^Only 1 node has threads, of 2:' || why+=" a node without threads is not said"
	"$LONGPOLE" cdat --set=nodes=2 --set=processors=2 regions.lpt 2>>err | grep -q '^Only' && why+=" both nodes have threads"
	# of more phases than are shown: how much is serial, and how much is not
	[[ -n $why ]] || why=$(record -o many.lpt -- ./regions 15 3>&1 >/dev/null)
	"$LONGPOLE" ciat many.lpt 2>>err | sed -n '/more phases/,/^$/p' >many.said
	awk '/^  all serial/ { for (i = 3; i <= 9; i++) n[i] += $i } /^  all parallel/ { for (i = 3; i <= 9; i++) n[i] += $i; if ($3 < 15 * 4096) exit 1 }
		/^  all  / { for (i = 2; i <= 8; i++) if ($i != n[i + 1]) exit 1; found = 1 } END { exit !found }' many.said || why+=" sums of phases: $(cat many.said)"
	[[ $("$LONGPOLE" ciat regions.lpt 2>>err | grep -cE '^  [13] parallel {5,}[0-9]{1,9} ') == 2 ]] || why+=" what are the regions' clocks?"
	if has_compiler valgrind && [[ -x $LONGPOLE_BUILD/valgrind/longpole-amd64-linux ]]; then
		gcc -w -O1 -fopenmp -o regions.native "$here/regions.c" && record --recorder=valgrind -o regions.lpt -- ./regions.native >/dev/null
		[[ $("$LONGPOLE_BUILD/tests/memory/memory-calls" regions.lpt regions.native 2>>err | grep -c ' thread_begin') == 3 ]] || why+=" Valgrind: not three threads"
	fi
	unset OMP_WAIT_POLICY
	result regions "$why"
}
regions

# Which stores leave what is there.
silent() {
	local why=''
	selected silent || return 0
	if ! has_compiler valgrind || [[ ! -x $LONGPOLE_BUILD/valgrind/longpole-amd64-linux ]]; then
		echo "skip silent: Valgrind's tool is not here"
		return
	fi
	"$LONGPOLE" cc -w -O1 -o silent "$here/silent.c" 2>err || why=$(head -n 3 err)
	[[ -n $why ]] || why=$(record --recorder=valgrind -o silent.lpt -- ./silent 3>&1 >/dev/null)
	"$accesses" silent.lpt 0 silent silent 2>>err | awk '$3 == 1 || $3 == 2 || $3 == 16 || $1 ~ /[Aa]/ { n[$1 " " $3]++ } END { for (k in n) print k, n[k] }' |
		grep -i '^[as]' | LC_ALL=C sort >silent.said
	[[ $(cat silent.said) == $'A 4 13\nS 1 9\nS 16 8\nS 2 40\na 4 9\ns 1 91\ns 16 12\ns 2 184' ]] || why+=" $(cat silent.said)"
	"$LONGPOLE" ciat --json silent.lpt >silent.json 2>>err
	jq -e '.result.silent_stores | .silent > 296 and .stores > .silent and .atomic.stores >= 22 and .threads[0].silent == .silent' silent.json >/dev/null ||
		why+=" $(jq -c .result.silent_stores silent.json)"
	# Each access has one object; what the dynamic linker maps are variables; without their names it is their section.
	jq -e '.result | ([.objects[].accesses] | add) == .usage.data_accesses and ([.objects[] | select(.name | test("from _dl_map_(object_from_fd|segments)"))] == [])' silent.json >/dev/null ||
		why+=" objects: $(jq -c .result.objects silent.json)"
	# What a string instruction writes is a range, and said beside the stores.
	"$LONGPOLE" ciat silent.lpt | grep -Eq '^  Ranges, not among these loads and stores .* [1-9][0-9.]* (Ki)?B written$' || why+=" no ranges"
	# Code without a function goes by its section.
	jq -e '[.result.functions[].name] | length > 100 and (map(select(startswith("0x"))) == [])' silent.json >/dev/null ||
		why+=" code without a name: $(jq -c '[.result.functions[].name] | map(select(startswith("0x")))' silent.json)"
	strip silent && "$LONGPOLE" ciat --json silent.lpt >stripped.json 2>>err
	jq -e --slurpfile named silent.json '([$named[0].result.objects[] | select(.name | IN("half", "byte", "vector", "atomic", "silent .bss")) | .accesses] | add) as $n | $n <=
		(.result.objects[] | select(.kind == "section" and .name == "silent .bss") | .accesses)' stripped.json >/dev/null ||
		why+=" stripped: $(jq -c '.result.objects[:9]' stripped.json)"
	result silent "$why"
}
silent

# emulated PROCESSOR - programs for it, by QEMU's plugin: known numbers of accesses; instructions as QEMU's own log counts them; whatever
# else they do, output and exit status are QEMU's.
emulated() {
	local why='' processor=$1 compiler=$1-linux-gnu-gcc what plain
	selected "emulated_$processor" || return 0
	if ! has_compiler "qemu-$processor" || ! has_compiler "$compiler"; then
		echo "skip emulated_$processor: no qemu-$processor, or no $compiler"
		return
	fi
	foreign() { timeout 60 "qemu-$processor" -L "/usr/$processor-linux-gnu" "$@"; }
	objects() { jq -r '.result.objects[] | select(.name | IN("left", "right", "product", "pairs", "counted", "guarded")) | "\(.name) \(.accesses)"' "$1" | LC_ALL=C sort | paste -sd' '; }
	"$compiler" -w -g -O1 -o "foreign.$processor" "$here/foreign.c" -pthread 2>err &&
		"$compiler" -w -g -O1 -static -o "foreign_static.$processor" "$here/foreign.c" -pthread 2>>err || why="does not build: $(head -n 3 err)"
	for what in matrix atomics many forks execs signals crashes leaves; do
		[[ -z $why ]] || break
		foreign "./foreign.$processor" $what >plain.said 2>/dev/null
		plain=$?
		timeout 60 "$LONGPOLE" record -q --level 3 -o "$what.lpt" -- "./foreign.$processor" $what >recorded.said 2>err
		[[ $? == "$plain" ]] || why+=" $what: another exit status than $plain: $(head -n 3 err)"
		cmp -s plain.said recorded.said || why+=" $what: other output"
		"$LONGPOLE" ciat --json $what.lpt >$what.json 2>err || why+=" $what: $(head -n 2 err)"
	done
	# 40 times 40 are written; each is then read, those of two matrices 40 times.
	[[ -n $why || $(objects matrix.json) == "left 65600 pairs 160 product 1601 right 65600" ]] || why+=" matrix: $(objects matrix.json)"
	# each addition is a load and a store; main prints both
	[[ -n $why || $(objects atomics.json) == "counted 4001 guarded 4001" ]] || why+=" atomics: $(objects atomics.json)"
	[[ -n $why ]] || jq -e '[.result.objects[] | select(.name == "product" or .name == "counted")] | length == 1 and all(.kind == "variable")' matrix.json atomics.json >/dev/null ||
		why+=" objects: $(jq -c '.result.objects[:6]' matrix.json)"
	[[ -n $why ]] || jq -e '[.result.functions[] | select(.name == "rows")] | length == 1 and .[0].loads == 128000 and .[0].stores == 1600' matrix.json >/dev/null ||
		why+=" rows(): $(jq -c '.result.functions[] | select(.name == "rows")' matrix.json)"
	# alone, not alone, alone at the end (between, too, when the first thread was that fast)
	[[ -n $why || $(jq -r '[.result.phases[].phase] | unique_by(.) | join(" ")' matrix.json) == "parallel serial" ]] || why+=" phases: $(jq -c '[.result.phases[].phase]' matrix.json)"
	[[ -n $why ]] || jq -e '.result.phases[0].phase == "serial" and .result.phases[-1].phase == "serial"' matrix.json >/dev/null || why+=" it is not alone at the end"
	[[ -n $why || $(jq '.result.threads | length' many.json) == 101 ]] || why+=" many: $(jq '.result.threads | length' many.json) threads"
	if [[ -z $why ]]; then
		foreign -singlestep -d nochain,exec -D steps "./foreign_static.$processor" one >/dev/null
		timeout 60 "$LONGPOLE" record -q --level 3 -o one.lpt -- "./foreign_static.$processor" one >/dev/null 2>err
		# all jumps, one after the other, and the number of instructions
		python3 "$here/jumps.py" "$processor-linux-gnu-objdump" "foreign_static.$processor" steps >steps.jumps
		"$accesses" -J one.lpt 0 >one.jumps 2>>err
		cmp -s one.jumps steps.jumps || why+=" $(diff one.jumps steps.jumps | grep -c '^[<>]') jumps differ, the first: $(diff one.jumps steps.jumps | sed -n 2p)"
		[[ $(wc -l <one.jumps) -gt 500 ]] || why+=" too few jumps"
	fi
	# meanwhile
	[[ -n $why ]] || timeout 60 "$LONGPOLE" ciat --json -- "./foreign.$processor" matrix 2>live.json >/dev/null || why+=" on the fly: $(tail -n 2 live.json)"
	[[ -n $why || $(objects live.json) == "$(objects matrix.json)" ]] || why+=" on the fly: $(objects live.json)"
	"$LONGPOLE" record -o no.lpt -- "./foreign.$processor" one >/dev/null 2>err && why+=" level 1 of another processor's program"
	grep -q -- '--level 3' err || why+=" it does not say what can be recorded: $(cat err)"
	"$LONGPOLE" record --level 3 --recorder=qemu -o no.lpt -- /bin/true >/dev/null 2>err && why+=" QEMU takes this machine's programs"
	grep -q 'not a 64-bit ARM or RISC-V program' err || why+=" no reason: $(cat err)"
	result "emulated_$processor" "$why"
}
emulated aarch64
emulated riscv64

# Level 2 has the accesses of level 3.
levels() {
	local why=
	selected levels || return 0
	"$LONGPOLE" cc -w -O2 -o three "$here/vectors.c" && LONGPOLE_CC_LEVEL=2 "$LONGPOLE" cc -w -O2 -o two "$here/vectors.c"
	record -o three.lpt -- ./three >/dev/null
	level=2 record -o two.lpt -- ./two >/dev/null
	"$accesses" three.lpt 0 | cut -d' ' -f1,3 >three.txt
	"$accesses" two.lpt 0 | cut -d' ' -f1,3 >two.txt
	cmp -s three.txt two.txt || why="the accesses differ"
	[[ -s two.txt ]] || why+=" there are none"
	level=3 record -o no.lpt -- ./two >/dev/null && why+=" level 3 of a program built for 2"
	record --no-compress -o plain.lpt -- ./three >/dev/null || why+=" --no-compress: $(cat err)"
	"$accesses" plain.lpt 0 | cut -d' ' -f1,3 | cmp -s - three.txt || why+=" not compressed, the accesses differ"
	(($(stat -c %s plain.lpt) > $(stat -c %s three.lpt))) || why+=" compressed it is no smaller"
	record -o no.lpt -- /bin/true >/dev/null && why+=" a program that was not built for it"
	grep -q "CC='longpole cc'" err || why+=" does not say how to build it"
	grep -q 'doctor' err && why+=" sends who forgot to build it to the doctor"
	record -o env.lpt -- env -i ./three >/dev/null || why+=" through env: $(cat err)"
	"$accesses" env.lpt 0 | cut -d' ' -f1,3 | cmp -s - three.txt || why+=" through env, the accesses differ"
	result levels "$why"
}
levels >levels.out 2>/dev/null
grep -E '^(ok|not ok|skip) ' levels.out

# Two threads in two fields of an allocated object: ciat names object, allocation, fields and lines, and the remedy removes it.
sharing() {
	local why='' from hits misses
	selected sharing || return 0
	from=$(grep -n 'object\[0\] = object\[1\] = ' "$here/sharing.c" | cut -d: -f1)
	hits=$(grep -n 'hits++' "$here/sharing.c" | cut -d: -f1) misses=$(grep -n 'misses++' "$here/sharing.c" | cut -d: -f1)
	"$LONGPOLE" cc -g -O1 -o sharing "$here/sharing.c" -lpthread 2>cc.err || why="does not build: $(head -n 3 cc.err)"
	[[ -n $why ]] || why=$(record -o sharing.lpt -- ./sharing)
	[[ -n $why ]] || "$LONGPOLE" ciat sharing.lpt >sharing.txt 2>err || why="ciat: $(cat err)"
	for said in "False sharing: .* heap block from main sharing.c:$from, byte 0 " "byte 0) stored by thread .* sharing.c:$hits:" \
		"byte 8) stored by thread .* sharing.c:$misses:" "(counters\[0\].hits in heap block" "(counters\[0\].misses in heap block" "heap block from main sharing.c:$from (1 block, 64 B)"; do
		[[ -n $why ]] || grep -q "$said" sharing.txt || why="does not say: $said"
	done
	[[ -n $why ]] || "$LONGPOLE" ciat --json sharing.lpt >sharing.json 2>err || why="ciat --json: $(cat err)"
	[[ -n $why ]] || jq -e '.result | (.objects[0] | .kind == "heap" and .accesses >= 80000 and .false_sharing_misses > 16 and .lines_moved == 1)
		and ([.functions[].name] | contains(["count_hits", "count_misses"]))
		and .lines[0].sites[0].allocated_by.function == "main"' sharing.json >/dev/null || why="JSON: $(jq -c .result.objects sharing.json)"
	[[ -n $why ]] || why=$(record -o apart.lpt -- ./sharing apart)
	[[ -n $why ]] || "$LONGPOLE" ciat --json apart.lpt >apart.json 2>err || why="ciat: $(cat err)"
	[[ -n $why ]] || jq -e '.result.total.all.line_false_sharing_misses < 16' apart.json >/dev/null || why="the remedy does not help"
	result sharing "$why"
}
sharing

# What a thread waits for is not work, and said; so is a line that most of all transfers are of.
polls() {
	local why=''
	selected polls || return 0
	"$LONGPOLE" cc -g -O1 -o polls "$here/polls.c" -lpthread 2>cc.err || why="does not build: $(head -n 3 cc.err)"
	[[ -n $why ]] || why=$(record -o polls.lpt -- ./polls)
	[[ -n $why ]] || "$LONGPOLE" ciat polls.lpt >polls.txt 2>err || why="ciat: $(cat err)"
	[[ -n $why ]] || sed -n 2p polls.txt | grep -Eq '^3[0-9]% of the accesses are to turn, which came back changed [1-9] times? only: threads that wait' || why="says: $(head -n 2 polls.txt)"
	[[ -n $why ]] || why=$(record -o index.lpt -- ./polls index)
	[[ -n $why ]] || "$LONGPOLE" ciat index.lpt >index.txt 2>err || why="ciat: $(cat err)"
	for said in "times that a line comes back changed are of one line: .*most often [a-z]* by count.* polls.c:$(grep -n '/\* counts' "$here/polls.c" | cut -d: -f1)\.$" '^  0x.* false [0-9]*  true [0-9]{4}'; do
		[[ -n $why ]] || grep -Eq "$said" index.txt || why="does not say: $said, but $(head -n 1 index.txt)"
	done
	[[ -n $why ]] || ! grep -q 'threads that wait' index.txt || why="nobody waits there"
	[[ -n $why ]] || why=$(record -o pair.lpt -- ./polls pair)
	[[ -n $why ]] || "$LONGPOLE" ciat --json pair.lpt >pair.json 2>err || why="ciat: $(cat err)"
	[[ -n $why ]] || "$LONGPOLE" ciat pair.lpt | head -n 1 | grep -q '^False sharing: 100% of the .* most in left and right' || why="no false sharing: $("$LONGPOLE" ciat pair.lpt | head -n 1)"
	[[ -n $why ]] || jq -e '[.result.objects[] | select(.name | IN("left", "right")) | .lines_moved] == [1, 1]' pair.json >/dev/null || why="lines of a pair: $(jq -c '[.result.objects[] | [.name, .lines_moved]]' pair.json)"
	result polls "$why"
}
polls

# Nothing else is shared: the first line says what is wrong, not that all is well.
two_fields() {
	local why=''
	selected two_fields || return 0
	"$LONGPOLE" cc -g -O1 -o two_fields "$here/two_fields.c" -lpthread 2>cc.err || why="does not build: $(head -n 3 cc.err)"
	[[ -n $why ]] || why=$(record -o two_fields.lpt -- ./two_fields)
	[[ -n $why ]] || "$LONGPOLE" ciat two_fields.lpt 2>err | head -n 1 | grep -q '^False sharing: 100%.*counters.hits and counters.misses' || why="says: $("$LONGPOLE" ciat two_fields.lpt | head -n 1)"
	result two_fields "$why"
}
two_fields

# What has no name but is on a stack: whose.
# newer: a program that a later longpole has built is not recorded as nothing.
newer() {
	local why='' command
	selected newer || return 0
	"$LONGPOLE" cc -o newer_program "$here/threads.c" -lpthread 2>cc.err || why="does not build: $(head -n 2 cc.err)"
	if [[ -z $why ]]; then
		python3 -c 'import sys
file = open(sys.argv[1], "r+b")
text = file.read()
file.seek(text.index(b"\x01\0\0\0longpole\0\0\0\0") + 16)
file.write(b"\x63")' newer_program || why+=" has no note"
		for command in 'record -q --level 3 -o newer.lpt' ciat; do
			timeout 20 "$LONGPOLE" $command -- ./newer_program >said 2>err
			[[ $? == 125 ]] || why+=" $command: exit status is not 125"
			grep -q 'was built by a newer longpole: its memory streams are of version 99, this one reads up to' err || why+=" $command says: $(head -n 2 err)"
			[[ ! -s said && ! -e newer.lpt ]] || why+=" $command: the program ran, or there is a trace"
		done
	fi
	result newer "$why"
}
newer

# no_room: pages that the shared memory should have are refused, when the program waits to be started (a quota, a file system that says it has more).
no_room() {
	local why='' dir=$TMPDIR/no_room
	selected no_room || return 0
	mkdir -p "$dir"
	printf '%s\n' '#include <errno.h>' '#include <fcntl.h>' 'int posix_fallocate64(int fd, off_t at, off_t bytes)' \
		'{ return bytes > 1 << 20 ? ENOSPC : fallocate(fd, 0, at, bytes) ? errno : 0; }' >refuse.c
	gcc -D_GNU_SOURCE -shared -fPIC -o refuse.so refuse.c 2>cc.err && "$LONGPOLE" cc -o no_room_program "$here/threads.c" -lpthread 2>>cc.err ||
		why="does not build: $(head -n 2 cc.err)"
	if [[ -z $why ]]; then
		mkdir -m 700 /dev/shm/longpole-session-99999999-killed # of a session that was killed, whose records nobody can recover
		: >/dev/shm/longpole-session-99999999-killed/session
		LD_PRELOAD=./refuse.so TMPDIR=$dir timeout 20 "$LONGPOLE" record -q --level 3 -o no_room.lpt -- ./no_room_program >said 2>err
		[[ $? == 125 ]] || why+=" exit status is not 125"
		grep -q 'cannot make 64 MiB of shared memory in .*: No space left on device' err || why+=" says: $(head -n 2 err)"
		[[ ! -s said ]] || why+=" the program ran"
		[[ ! -e no_room.lpt ]] || why+=" there is a trace"
		why+=$(find "$dir" /dev/shm -newer refuse.so \( -name 'memory-*' -o -name 'longpole-*-killed' \) 2>/dev/null)
	fi
	result no_room "$why"
}
no_room

on_stack() {
	local why='' thread of=(main thread)
	selected on_stack || return 0
	"$LONGPOLE" cc -g -O1 -o on_stack "$here/on_stack.c" -lpthread 2>cc.err || why="does not build: $(head -n 3 cc.err)"
	for thread in 0 1; do
		[[ -n $why ]] || why=$(record -o on_stack.lpt -- ./on_stack "${of[thread]}")
		[[ -n $why ]] || "$LONGPOLE" ciat on_stack.lpt 2>err | head -n 1 | grep -q "^False sharing: .* most in the line at 0x[0-9a-f]*, on the stack of thread $thread (" ||
			why+=" says: $("$LONGPOLE" ciat on_stack.lpt | head -n 1)"
		[[ -n $why ]] || "$LONGPOLE" ciat -- ./on_stack "${of[thread]}" >of.run 2>&1 || why+=" while it runs: $(tail -n 2 of.run)"
		[[ -n $why ]] || head -n 1 of.run | grep -q "on the stack of thread $thread (" || why+=" while it runs: $(head -n 1 of.run)"
	done
	result on_stack "$why"
}
on_stack

# The waiter is recorded, too: where in the program, not in the library that stands before each
# call.
called() {
	local why='' compiler options records=$LONGPOLE_BUILD/src/preload
	selected called || return 0
	printf 'int run(void);\nint main(void)\n{\n\treturn run();\n}\n' >calls_library.c
	for compiler in gcc clang static library; do
		options=(-g -O2 -o called "$here/called.c" -lpthread)
		case $compiler in
		clang) has_compiler clang || continue ;;
		static) options+=(-static "-L$records" "@$records/wrap.opts") ;;
		library)
			"$LONGPOLE" cc -g -O2 -fPIC -shared -Dmain=run -o libcalled.so "$here/called.c" 2>cc.err || why+=" $(head -n 3 cc.err)"
			options=(-o called calls_library.c ./libcalled.so)
			;;
		esac
		LONGPOLE_CC=$([[ $compiler == clang ]] && echo clang || echo gcc) "$LONGPOLE" cc "${options[@]}" 2>cc.err ||
			why+=" $compiler: does not build: $(head -n 3 cc.err)"
		[[ -n $why ]] || why=$(record --heap -o called.lpt -- ./called)
		[[ -n $why ]] || "$LONGPOLE" dump --json called.lpt >called.records 2>err || why="dump: $(cat err)"
		grep -n '/\* waits \*/' "$here/called.c" | sed 's/:.*//' >expected
		jq -r 'select(.kind | test("_wait$") or . == "io_begin") | select(.op_text != "write") | .site_text' called.records |
			grep -o 'called.c:[0-9]*' | cut -d: -f2 | sort -nu >said
		[[ -n $why ]] || cmp -s expected said || why+=" $compiler: waits are in lines $(paste -sd' ' said), not $(paste -sd' ' expected)"
		! grep -m1 -E 'longpole_at|target_call' called.records >said || why+=" $compiler: $(cut -c1-300 said)"
		"$LONGPOLE" locks --json called.lpt >called.json 2>err || why+=" locks: $(cat err)"
		jq -e --arg fill "fill (called.c:$(grep -n 'lock(&box->lock); /\*' "$here/called.c" | cut -d: -f1))" \
			'any(.result.locks[].sites[]; .where == $fill and .contended == 1)' called.json >/dev/null || why+=" $compiler: $(jq -c '[.result.locks[].sites[].where]' called.json)"
		[[ $compiler == static ]] || grep -q "in memory of new_box (called.c:$(grep -n '/\* allocates' "$here/called.c" | cut -d: -f1))" called.json ||
			why+=" $compiler: who allocated it? $(jq -c '[.result.locks[].lock]' called.json)"
		"$LONGPOLE" actors called.lpt 2>err | grep -q called/worker || why+=" $compiler: no thread called/worker $(cat err)"
	done
	result called "$why"
}
called

# named PROGRAM [FIELD LINE]... - ciat's answer has the field, met by an instruction of the source line (0: of any).
named() {
	local program=$1
	shift
	record -o "$program.lpt" -- "./$program" && "$LONGPOLE" ciat --json "$program.lpt" >"$program.json" 2>err || { cat err; return; }
	for ((; $#; )); do
		jq -e --arg field "$1" --argjson line "$2" '[.result.lines[] | select(.false_misses > 16) | .sites[] |
			select(.field == $field and ($line == 0 or .line == $line))] | length > 0' "$program.json" >/dev/null ||
			echo "$program: no $1 in line $2: $(jq -c '[.result.lines[].sites[] | [.field, .line]]' "$program.json")"
		shift 2
	done
}

# Members of variables by their names, as far as the files say them.
fields() {
	local why='' line name kind options
	selected fields || return 0
	declare -A at
	for name in own_counters.count.hits own_counters.count.misses 'table[1].total' 'table[2].total' shared_counters.count.hits shared_counters.count.misses; do
		line=$(grep -nF "$name++" "$here/fields.c" | cut -d: -f1)
		at[$name]=$line
	done
	# copied: the linker puts the library's variable into the program
	for kind in -g -g0 copied; do
		options=(-O1 -g -no-pie -fno-pie)
		[[ $kind == copied ]] || options=(-O1 "$kind" -fPIC)
		"$LONGPOLE" cc -O1 ${kind/copied/-g} -fPIC -shared -DLIBRARY -o "libfields$kind.so" "$here/fields.c" 2>cc.err &&
			"$LONGPOLE" cc "${options[@]}" -o "fields$kind" "$here/fields.c" "./libfields$kind.so" -lpthread 2>>cc.err ||
			why+="does not build: $(head -n 3 cc.err)"
	done
	local all=()
	for name in "${!at[@]}"; do all+=("$name" "${at[$name]}"); done
	[[ -n $why ]] || why=$(named fields-g "${all[@]}")
	[[ -n $why ]] || why=$(named fieldscopied "${all[@]}")
	[[ -n $why ]] || why=$(named fields-g0 own_counters+0x8 0 own_counters+0x10 0 table+0x18 0 table+0x28 0 shared_counters+0x8 0 shared_counters+0x10 0)
	[[ -n $why ]] || "$LONGPOLE" ciat fields-g.lpt >fields.said 2>&1
	[[ -n $why ]] || grep -q '^False sharing: .*own_counters.count.hits and own_counters.count.misses\|^False sharing: .*table\[1\].total and table\[2\].total\|^False sharing: .*shared_counters.count.hits and shared_counters.count.misses' fields.said ||
		why="the finding names no two fields: $(head -n 1 fields.said)"
	result fields "$why"
	if has_compiler g++; then
		why=
		LONGPOLE_CXX=g++ "$LONGPOLE" c++ -O1 -g -o fields_cc "$here/fields.cc" -lpthread 2>cc.err || why="does not build: $(head -n 3 cc.err)"
		[[ -n $why ]] || why=$(named fields_cc shop::till::first.closed "$(grep -n 'first.closed = ' "$here/fields.cc" | cut -d: -f1)" \
			shop::till::first.sales "$(grep -n 'first.sales = ' "$here/fields.cc" | cut -d: -f1)" \
			'local(bool)::each[0].sales' 0 'local(bool)::each[1].opened' 0)
		result fields_cc "$why"
	fi
}
fields
