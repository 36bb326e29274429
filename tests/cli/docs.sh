# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2094,SC2016,SC2086,SC2206,SC2034,SC1091 # $trace and $work come from run.sh; words split on purpose
# docs.sh - man pages and completion say what the tables say; the pages' examples work.

test_man_pages_are_complete() {
	local name option page
	while read -r name; do
		page=$LONGPOLE_SOURCE/doc/man/longpole${name:+-}${name// /-}.1.scd # "noc sim": longpole-noc-sim
		[[ -f $page ]] || fail "$(basename "$page") is missing"
		grep -q '^# EXAMPLES' "$page" || fail "$(basename "$page") has no EXAMPLES"
		[[ $name == *' '* ]] || grep -qF "*longpole${name:+-$name}*" "$LONGPOLE_SOURCE/doc/man/longpole.1.scd" || # verbs are on their command's page
			fail "longpole.1.scd does not mention longpole-$name"
		while read -r option; do
			grep -qF -- "*--$option*" "$page" || fail "$(basename "$page") does not mention --$option"
		done < <(longpole help --json | jq -r --arg n "$name" '.commands[] | select(.name == $n) | .options[].name')
		# and nothing that is not there
		while read -r option; do
			longpole help --json | jq -e --arg n "$name" --arg o "$option" \
				'.commands[] | select(.name == $n) | .options | any(.name == $o)' >/dev/null ||
				[[ $option == version ]] || fail "$(basename "$page") has --$option, the command has not"
		done < <(sed -n '/^# OPTIONS/,/^# [^O]/s/^\(\*-.\*, \)\?\*--\([a-z-]*\)\*.*/\2/p' "$page")
	done < <(longpole help --json | jq -r '.commands[].name')
}

test_man_pages_are_well_formed() {
	command -v scdoc >/dev/null || skip "no scdoc (Debian package scdoc)"
	local page
	for page in "$LONGPOLE_SOURCE"/doc/man/*.scd; do
		scdoc <"$page" >out 2>err || fail "$(basename "$page"): $(cat err)"
	done
}

# A program that says whom it serves; its recording is annotated.lpt.
make_annotated() {
	# shellcheck disable=SC2086 # it may be several words: ccache gcc
	${CC:-cc} -O2 -g -pthread -I "$LONGPOLE_SOURCE/include" "$LONGPOLE_SOURCE/examples/annotated.c" -o annotated ||
		fail "examples/annotated.c does not compile"
	expect 0 longpole record -q -o annotated.lpt ./annotated
}

test_man_examples() {
	local page line nr=0
	cp "$trace" ladder.lpt
	annotate_bin annotate.bin
	make_spans spans.json
	ln -s "$work/bin/ladder" ladder
	make_annotated
	make_smait run.2
	for page in "$LONGPOLE_SOURCE"/doc/man/*.scd; do
		while read -r line; do
			nr=$((nr + 1))
			(set -o pipefail; eval "$line") >out 2>err </dev/null ||
				{ cat err >&2; fail "$(basename "$page"): $line"; }
		done < <(sed -n '/^# EXAMPLES/,/^# SEE/s/^\$ //p' "$page")
	done
	((nr >= 20)) || fail "only $nr examples were found"
}

test_completion() {
	longpole completion bash >bash || fail "bash"
	longpole completion zsh >zsh || fail "zsh"
	longpole completion fish >fish || fail "fish"
	bash -n bash || fail "bash cannot read it"
	! command -v zsh >/dev/null || command zsh -n zsh || fail "zsh cannot read it"
	! command -v fish >/dev/null || command fish -n fish || fail "fish cannot read it"
	source ./bash
	completes() { # WORD... - the last one is completed
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
		_longpole 2>/dev/null
	}
	completes longpole rep
	[[ " ${COMPREPLY[*]} " == *' report '* ]] || fail "longpole rep<TAB>: ${COMPREPLY[*]}"
	completes longpole report --fu
	[[ ${COMPREPLY[*]} == --full ]] || fail "longpole report --fu<TAB>: ${COMPREPLY[*]}"
	completes longpole export --format = sp
	[[ ${COMPREPLY[*]} == speedscope ]] || fail "longpole export --format=sp<TAB>: ${COMPREPLY[*]}"
	touch x.lpt y.txt
	completes longpole path ''
	[[ ${COMPREPLY[*]} == x.lpt ]] || fail "longpole path <TAB>: ${COMPREPLY[*]}"
	completes longpole import ''
	[[ " ${COMPREPLY[*]} " == *' perf '*' gem5 '* ]] || fail "longpole import <TAB>: ${COMPREPLY[*]}"
	completes longpole import gem5 y
	[[ ${COMPREPLY[*]} == y.txt ]] || fail "longpole import gem5 <TAB>: ${COMPREPLY[*]}"
	completes longpole noc s
	[[ " ${COMPREPLY[*]} " == *' sim sample '* ]] || fail "longpole noc s<TAB>: ${COMPREPLY[*]}"
	completes longpole noc sim --sat
	[[ ${COMPREPLY[*]} == --saturation ]] || fail "longpole noc sim --sat<TAB>: ${COMPREPLY[*]}"
	completes longpole completion z
	[[ ${COMPREPLY[*]} == zsh ]] || fail "longpole completion z<TAB>: ${COMPREPLY[*]}"
}
