# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2094,SC2016,SC2086,SC2206,SC2034,SC1091 # $trace and $work come from run.sh; words split on purpose
# usage.sh - help, mistakes, exit statuses.

# How many samples a second: what was asked for; by default as many as 1.5 % of a processor are enough for.
test_sample_rate() {
	expect 0 longpole record --sample-hz=333 -o rate.lpt sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'
	expect 0 longpole report --json rate.lpt
	is_json out '[.trace.recording_cost.parts[] | select(.what == "samples") | .method | endswith("; 333 a second")] == [true]'
	expect 0 longpole record -o rate.lpt sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'
	expect 0 longpole report --json rate.lpt
	is_json out '.trace.recording_cost.parts[] | select(.what == "samples") | (.method | capture("; (?<hz>[0-9]+) a second$").hz | tonumber) as $hz |
		($hz == 999 or $hz == 499 or $hz == 249) and (.times == 0 or $hz == 249 or .total_ns / .times * $hz <= 15000000)'
}

# A record that found no room took its time, too: of 40,000,000 in a buffer of a millisecond most find none.
test_cost_of_lost_records() {
	cat >many.c <<-'C'
		#include <pthread.h>
		static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
		int main(void)
		{
			for (int i = 0; i < 20000000; i++)
				pthread_mutex_lock(&lock), pthread_mutex_unlock(&lock);
			return 0;
		}
	C
	cc -O2 -pthread -o many many.c 2>cc.err || skip 'no C compiler'
	expect 0 longpole record --buffer=1M -o many.lpt ./many
	expect 0 longpole report --json many.lpt
	is_json out '(.diagnostics[] | select(.name == "records_lost") | .count) as $lost | $lost > 1000000 and
		(.trace.recording_cost.parts[] | select(.what == "records that found no room") | .times == $lost and .total_ns >= 10 * $lost)'
}

# A child that nobody waits for is in no count of the kernel's: what it computed is the program's
# all the same.
test_cost_beside_who_is_not_waited_for() {
	expect 0 longpole record -o left.lpt sh -c '(while :; do :; done) & sleep 1; kill -KILL $!'
	expect 0 longpole report --json left.lpt
	is_json out '.trace.recording_cost | .target_cpu_ns > 100000000 and .share < 0.5'
}

# Our library needs glibc: a program of another C library dies of it. Here it is glibc's loader with another's name, so what
# is executed can say what it was given.
test_another_c_library() {
	local loader
	cat >other.c <<-'C'
		#include <stdio.h>
		#include <stdlib.h>
		#include <string.h>
		int main(void)
		{
			const char *list = getenv("LD_PRELOAD");
			puts(list && strstr(list, "longpole") ? "given" : "none");
			return 4;
		}
	C
	cc -o same other.c 2>cc.err || skip 'no C compiler'
	loader=$(readelf -l same | sed -n 's/.*interpreter: \(.*\)\]/\1/p')
	cp "$loader" ld-musl-x86_64.so.1 && cc -o other other.c "-Wl,--dynamic-linker=$PWD/ld-musl-x86_64.so.1" || fail 'cannot link'
	expect 125 longpole record -o a.lpt ./other
	has err './other cannot be recorded from inside: its C library is not glibc'
	printf '#!%s\n' "$PWD/other" >script && chmod +x script
	for how in 'record -o a.lpt' 'locks --output=a.lpt' 'calls --output=a.lpt'; do
		expect 4 longpole $how -- sh -c './same; ./script; ./other'
		[[ $(grep -xE 'given|none' out | tr '\n' ' ') == 'given none none ' ]] || fail "$how: $(cat out)"
		rm -f a.lpt
	done
	expect 4 longpole record -o a.lpt -- env other=1 ./other
	has err '1 program ran without being recorded: of another C library than glibc'
}

# Where our file is out of reach, the loader would say so on the program's standard error.
test_out_of_reach() {
	as_root
	((EUID == 0)) || skip 'not root'
	local file
	cat >quiet.c <<-'C'
		#include <unistd.h>
		int main(int n, char **argument)
		{
			return n == 1 ? 6 : chroot("root") || chdir("/") || execl("/quiet", "/quiet", (char *)0);
		}
	C
	cc -o quiet quiet.c 2>cc.err || skip 'no C compiler'
	for file in $(ldd quiet | grep -o '/[^ ]*'); do
		mkdir -p "root${file%/*}" && cp "$file" "root$file"
	done
	cp quiet root/quiet
	expect 6 longpole record -q -o a.lpt ./quiet in
	! grep -q 'ld.so' err || fail "$(cat err)"
}

test_help() {
	expect 0 longpole --help
	has out 'Usage: longpole' record report whatif 'Examples'
	expect 2 longpole
	has err 'Usage: longpole'
	local name line
	while read -r name; do # "noc sim" is two words
		expect 0 longpole $name --help
		has out "Usage: longpole $name" '--help' 'Examples'
		expect 0 longpole help $name
		while read -r line; do # one for each form of the command
			has out "longpole $name $line"
		done < <(longpole help --json | jq -r --arg n "$name" '.commands[] | select(.name == $n) | .usage')
		cmp -s out <(longpole $name -h) || fail "'help $name' and '$name -h' differ"
	done < <(longpole help --json | jq -r '.commands[].name | select(. != "")')
	expect 0 longpole --version
	has out 'longpole '
}

test_help_fits_a_screen() {
	local name lines
	while read -r name; do
		lines=$(longpole $name --help | wc -l)
		((lines <= 68)) || fail "longpole $name --help has $lines lines"
		! longpole $name --help | grep -E '^.{101,}' >&2 || fail "longpole $name --help is wide"
	done < <(longpole help --json | jq -r '.commands[].name')
}

test_suggestions() {
	expect 2 longpole reprot
	has err "'reprot' is neither a command nor a program" 'did you mean: longpole report'
	expect 2 longpole report --ful "$trace"
	has err 'did you mean --full?'
	expect 2 longpole dump --kind=lock_wiat "$trace"
	has err "did you mean 'lock_wait'"
	expect 2 longpole locks --sort=hodl "$trace"
	has err "'hodl' is none of: path gain wait hold" "did you mean 'hold'?"
	expect 2 longpole export --format perfeto "$trace"
	has err "did you mean 'perfetto'?"
	expect 2 longpole report --color=sometimes "$trace"
	has err "'sometimes' is none of: auto always never"
	! grep -q 'did you mean' err || fail "suggested something for 'sometimes'"
	expect 2 longpole noc smi
	has err "did you mean 'sim'?"
	expect 2 longpole noc import netrac x -o y.lpt
	has err "did you mean 'netrace'?"
	expect 2 longpole help qeues
	has err "did you mean 'queues'?"
	expect 2 longpole completion bsh
	has err "did you mean 'bash'?"
	expect 2 longpole zzzzzzzzzz
	! grep -q 'did you mean' err || fail "suggested something for zzzzzzzzzz"
}

test_wrong_values() {
	expect 2 longpole path --limit=many "$trace"
	has err "'many' is no count"
	expect 2 longpole path --from=5 "$trace"
	has err 'write it like'
	expect 2 longpole report --max-memory=lots "$trace"
	expect 2 longpole report --color=pink "$trace"
	has err 'auto always never'
	expect 2 longpole report --full=1 "$trace"
	expect 2 longpole path --limit
	expect 2 longpole report "$trace" "$trace"
	expect 2 longpole export --format=nothing "$trace"
	expect 2 longpole export --format=perfetto --weight=wait "$trace"
	expect 2 longpole whatif "$trace" shrink x
	expect 2 longpole whatif "$trace" scale ladder_mutex
	expect 2 longpole whatif "$trace" remove 'no such state'
	has err 'holding' # what there is
	expect 2 longpole completion tcsh
	[[ ! -s out ]] || fail "an error wrote to standard output"
}

test_record_passes_status_on() {
	expect 7 longpole record -q -o a.lpt sh -c 'exit 7'
	expect 0 longpole record -q -o a.lpt true
	expect 143 longpole record -q -o a.lpt sh -c 'kill -TERM $$'
	expect 127 longpole record -q -o b.lpt ./nothing-here
	touch plain && chmod -x plain
	expect 126 longpole record -q -o b.lpt ./plain
	expect 125 longpole record
	expect 125 longpole record -o /nonexistent/dir/x.lpt true
	expect 125 longpole record --sample-hz=often true
}

test_program_keeps_its_streams() {
	expect 3 longpole -q -o a.lpt sh -c 'cat; echo out; echo err >&2; exit 3'
	[[ $(cat out) == out ]] || fail "standard output is not the program's alone"
	has err 'err' 'WHERE THE TIME GOES'
	[[ -f a.lpt ]] || fail "no trace"
	ln -s "$(type -P true)" path
	PATH=.:$PATH expect 0 longpole -q -- path
	[[ -f longpole-path.lpt ]] || fail "no longpole-path.lpt"
}

# A trace that is there stays, unless -o names it.
test_no_trace_is_overwritten() {
	local file
	for file in longpole-true.lpt longpole-true.2.lpt longpole-true.3.lpt; do
		expect 0 longpole record true
		[[ -s $file ]] || fail "no $file"
		has err "recorded $file"
		[[ $(stat -c %a "$file") == 600 ]] || fail "others may read $file"
		sha256sum "$file" >>sums
	done
	for file in 1 2 3 4; do
		longpole record -q sh -c "exit 0" &
	done
	wait
	(($(find . -name 'longpole-sh*.lpt' -size +0 | wc -l) == 4)) || fail "at once: $(ls)"
	longpole record -q ./nothing-here 2>err
	[[ ! -e longpole-nothing-here.lpt ]] || fail "a recording that did not begin has a trace"
	rm longpole-true.2.lpt
	ln -s nowhere longpole-true.2.lpt # a name that is taken, too
	expect 0 longpole true
	has err 'recorded longpole-true.4.lpt'
	sed -i 2d sums
	sha256sum --quiet -c sums || fail 'a trace was overwritten'
	expect 0 longpole locks -- true
	[[ -s longpole-true.5.lpt ]] || fail "longpole locks: no longpole-true.5.lpt"
	expect 0 longpole record -o longpole-true.lpt true
	! sha256sum --status -c sums 2>/dev/null || fail '-o does not replace'
}

test_newest_trace_is_the_default() {
	expect 2 longpole report
	has err 'no *.lpt in this directory'
	cp "$trace" old.lpt && touch -d '2001-01-01' old.lpt
	cp "$trace" new.lpt && touch -d '2002-02-02' new.lpt
	expect 0 longpole queues
	has err 'reading new.lpt'
	expect 0 longpole queues -q
	[[ ! -s err ]] || fail "--quiet is not"
}

test_a_program_where_a_trace_belongs() {
	expect 3 longpole locks "$work/bin/ladder"
	has err 'not a longpole trace' "longpole locks -- $work/bin/ladder"
}

test_buffer_has_a_least_size() {
	expect 125 longpole record --buffer=64K true
	has err '--buffer: at least 1M'
}

# What the kernel refuses is said with where it comes from; nothing ends by a signal of ours, and the program keeps its own.
# However small a stack the shell allows, longpole has enough of its own; the program keeps that limit.
test_small_stacks() {
	local command
	expect 0 bash -c 'ulimit -s 64; exec longpole record -o small.lpt bash -c "ulimit -s; ls >/dev/null; read -t 0.2 < <(sleep 1) || exit 0"'
	[[ $(<out) == 64 ]] || fail "the program's limit is $(<out)"
	expect 7 bash -c 'ulimit -s 128; exec longpole bash -c "exit 7"'
	has err 'longpole-bash.lpt'
	for command in 'report @' 'report --json @' 'report --full @' 'path @' 'whatif @ scale ladder_mutex=-50%' 'queues @' 'locks @' 'dump --stats @'; do
		expect 0 bash -c 'ulimit -s 64; exec longpole $0 "$@"' ${command//@/"$trace"}
		[[ -s out ]] || fail "$command says nothing"
		cp out small
		expect 0 longpole ${command//@/"$trace"}
		cmp -s out small || fail "$command says something else"
	done
}

test_refusals_say_why() {
	expect 125 bash -c 'ulimit -n 8; exec longpole record -o a.lpt true'
	has err 'Too many open files' 'ulimit -n'
	expect 125 bash -c 'ulimit -f 10; exec longpole record -o a.lpt true'
	has err 'File too large' 'ulimit -f'
	expect 125 bash -c 'ulimit -v 300000; exec longpole record -o a.lpt true'
	has err 'Cannot allocate memory' 'ulimit -v'
	expect 125 bash -c 'ulimit -n 6; exec longpole record -o a.lpt true'
	has err 'Too many open files' 'ulimit -n'
	expect 125 bash -c 'ulimit -n 4; exec longpole record -o a.lpt true'
	has err 'liblongpole-preload.so: Too many open files'
	: >file
	expect 125 longpole record -o - true
	has err 'needs a file with a name'
	[[ ! -e - ]] || fail 'a file named -'
	expect 125 longpole record -o file/a.lpt true
	has err 'is a file, not a directory'
	for place in /proc gone; do
		mkdir -p gone
		expect 125 bash -c 'cd $0 && { [ $0 != gone ] || rmdir ../gone; } && exec longpole record true' $place
		has err 'longpole-true.lpt: cannot create: No such file' '-o /tmp/longpole-true.lpt'
		mkdir -p gone
		expect 125 bash -c 'cd $0 && { [ $0 != gone ] || rmdir ../gone; } && exec longpole true' $place
		has err '-o /tmp/longpole-true.lpt'
	done
	expect 125 longpole record -o /proc/a.lpt true
	! grep -e '-o /tmp' err || fail 'where -o was given'
	expect 0 longpole record -o a.lpt bash -c 'trap "" XFSZ; ulimit -f 1; ! head -c 9999 /dev/zero >large'
	expect 153 longpole record -o a.lpt bash -c 'ulimit -f 1; exec head -c 9999 /dev/zero >large'
}

# Whatever --manual is given that nobody writes into: an error, and no waiting.
test_manual_of_a_fifo() {
	mkfifo pipe
	expect 2 timeout 20 longpole help --manual=pipe report
	has err 'not a regular file'
}
