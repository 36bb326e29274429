# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2094,SC2016 # variables come from run.sh
# inlined.sh - functions without a frame of their own: in reports and exports, as addr2line says.

# recorded - a trace of cxx_inlined in $work/inlined.lpt, made once.
recorded() {
	local program=$LONGPOLE_BUILD/tests/target/cxx_inlined
	[[ -x $program ]] || skip "no C++ compiler when this was built"
	once "$work/inlined.lpt" expect 0 longpole record -q -o "$work/inlined.lpt" "$program" || exit
}

# Every place of the program: the same frames, files and lines as addr2line's, which is asked for the
# instruction itself and for the one before, as return addresses and samples differ in that.
test_inlined_like_addr2line() {
	command -v addr2line >/dev/null || skip "no addr2line (Debian package binutils)"
	recorded
	longpole dump -d --json "$work/inlined.lpt" >all.json
	jq -rs '
		([.[] | select(.kind == "module" and (.path_text | endswith("/cxx_inlined"))) | .module]) as $own
		| ([.[] | select(.kind == "symbol")] | INDEX(.site)) as $symbol
		| ([.[] | select(.kind == "inlined")] | group_by(.site) | INDEX(.[0].site)) as $inlined
		| .[] | select(.kind == "site" and (.module as $m | $own | index($m)))
		| $symbol["\(.site)"] as $s | select($s.file != 0) | ($inlined["\(.site)"] // []) as $in
		| "\(.offset)\t" + ([[$s.file_text, $s.line]] + [$in[] | [.file_text, .line]]
			| map((.[0] | split("/")[-1]) + ":\(.[1])") | join(" "))' all.json >ours
	[[ -s ours ]] || fail "no place of the program has a line"
	local offset frames
	while IFS=$'\t' read -r offset frames; do
		for at in "$offset" $((offset - 1)); do
			addr2line -i -e "$LONGPOLE_BUILD/tests/target/cxx_inlined" "$(printf '%x' "$at")" |
				sed -E 's/ \(discriminator [0-9]+\)//; s,.*/,,' | paste -sd ' '
		done >theirs
		grep -qxF -- "$frames" theirs || { cat theirs >&2; fail "place $offset: $frames"; }
	done <ours
	grep -q ' .* ' ours || fail "nothing is inlined twice"
}

# The report says what was inlined, and a what-if takes its name.
test_inlined_in_answers() {
	recorded
	expect 0 longpole report --json "$work/inlined.lpt"
	jq -e '[.. | .functions? // empty | .[]] | length > 0' out >/dev/null || skip "this kernel gave no samples"
	is_json out '[.. | .inlined? // empty | .[].way] | any(test("mix < .*fold"))'
	is_json out '[.result.path[].where] | any(test("known::worker::publish.*inlined in known::run"))'
	expect 0 longpole whatif --json "$work/inlined.lpt" scale 'known::worker::fold*=-50%'
	is_json out '.result.scenarios[0].edits[0] | .states > 0 and .path_share > 0 and .estimated'
	expect 0 longpole export -q -f collapsed -o a.txt "$work/inlined.lpt"
	grep -Eq 'known::run\(unsigned int\);.*fold.*_\[i\];.*mix.*_\[i\] [0-9]+$' a.txt || { cat a.txt >&2; fail "collapsed: no chain"; }
	expect 0 longpole export -q -f firefox -o a.json "$work/inlined.lpt"
	is_json a.json '[.threads[].frameTable.inlineDepth[]] | max >= 2'
	is_json a.json 'all(.threads[]; .frameTable.length == (.frameTable.inlineDepth | length) and (.frameTable.func | max) < .funcTable.length)'
	expect 0 longpole export -q -f speedscope -o a.json "$work/inlined.lpt"
	is_json a.json '.shared.frames as $f | [.profiles[] | select(.type == "sampled") | .samples[] | map($f[.].name) | join(";")]
		| any(test("known::run.*;known::worker::fold.*inlined.*;.*mix.*inlined"))'
	is_json a.json '[.profiles[] | select(.type == "sampled") | (.samples | length) == (.weights | length)] | all'
	command -v protoc >/dev/null || skip "no protoc (Debian package protobuf-compiler) for pprof; the rest is right"
	expect 0 longpole export -q -f pprof -o a.pb.gz "$work/inlined.lpt"
	gzip -dc a.pb.gz | protoc --decode=perftools.profiles.Profile -I "$LONGPOLE_SOURCE/tests/cli" profile.proto >a.text 2>err ||
		{ cat err >&2; fail "protoc cannot decode it"; }
	awk '/^location/ {n = 0} /^  line/ {if (++n > 2) found = 1} END {exit !found}' a.text || fail "pprof: no location has three lines"
}

# V8 maps a part of its code once more beside what it compiles: that is not the file's.
test_code_beside_a_copy() {
	cat >copy.c <<'PROGRAM'
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define PAD(n) __attribute__((used, aligned(4096))) static void pad##n(void) {}
PAD(1) PAD(2) PAD(3) PAD(4)
extern char __executable_start[];
int main(void)
{
	/* mov $0x10000000, %eax; 1: dec %eax; jnz 1b; ret */
	static const uint8_t made[] = {0xb8, 0, 0, 0, 0x10, 0xff, 0xc8, 0x75, 0xfc, 0xc3};
	int fd = open("/proc/self/exe", O_RDONLY);
	char *at = mmap(0, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long offset = ((char *)pad2 - __executable_start) & -4096L;
	if (mmap(at, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, offset) != at ||
		mmap(at + 4096, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0) != at + 4096)
		return 1;
	memcpy(at + 4096, made, sizeof made);
	((void (*)(void))(at + 4096))();
	return 0;
}
PROGRAM
	"${CC:-cc}" -O1 copy.c -o copy
	expect 0 longpole record -o copy.lpt ./copy
	expect 0 longpole dump --kind=sample copy.lpt
	(($(wc -l <out) > 10)) || skip "no samples"
	# of the ten samples and more all but a few at the start are in what was made
	(($(grep -c 'site=[0-9]*(copy\|site=[0-9]*(pad' out) * 2 < $(wc -l <out))) || fail "it is the file's: $(tail -n 1 out)"
}

# A lambda's code lies within its type: what is inlined there is known all the same.
test_inlined_lambda() {
	local program=$LONGPOLE_BUILD/tests/target/cxx_lambda source=$LONGPOLE_SOURCE/tests/target/cxx_lambda.cc
	[[ -x $program ]] || skip 'no C++ compiler'
	expect 0 longpole record -q --sample-hz=0 -o lambda.lpt -- "$program"
	expect 0 longpole locks --no-replay --json lambda.lpt
	is_json out ".result.locks | length == 1 and (.[0].lock | contains(\"(cxx_lambda.cc:$(grep -n '// the line' "$source" | cut -d: -f1))\"))"
}

# A program without a build id that is replaced while it runs: its code has no names rather than those of the other one, now and later.
test_names_of_a_replaced_program() {
	local first=NAME_OF_WHO_RUNS second=OTHERS how
	for how in $first $second; do
		cat >"$how.c" <<-END
			#include <stdio.h>
			static volatile long sink;
			__attribute__((noinline)) static void $how(long n) { while (n--) sink += n; }
			int main(void) { $how(20000000); rename("new", "prog"); $how(200000000); return 0; }
		END
		gcc -g -O1 -Wl,--build-id=none "$how.c" -o "$how" || fail "$how.c does not build"
	done
	for how in same other; do
		cp $first prog && rm -f new
		if [[ $how == other ]]; then cp $second new; fi
		expect 0 longpole record -q -o t.lpt ./prog
		expect 0 longpole report --full t.lpt
		[[ $how == other ]] || has out $first
		! grep -q $second out || fail 'names of a program that did not run'
	done
	# Replaced after the recording: its instructions are not shown for those that ran.
	cp $first prog && rm -f new
	expect 0 longpole record -q -o t.lpt ./prog
	cp $second prog
	expect 0 longpole report --full t.lpt
	has out $first
	expect 4 longpole annotate --asm $first t.lpt
	has err 'another build'
}
