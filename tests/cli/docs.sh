# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2094,SC2016,SC2086,SC2206,SC2034,SC1091 # $trace and $work come from run.sh; words split on purpose
# docs.sh - man pages and completion say what the tables say; the pages' examples work.

# The whole page of a command: what doc/man has, and what the tables say.
man_page() { # WORD... - "noc sim"
	local name=longpole${1:+ $*}
	longpole help --manual="$LONGPOLE_SOURCE/doc/man/${name// /-}.1.scd" "$@"
}

test_each_command_has_a_page() {
	local name
	longpole help --json >help.json
	while read -r name; do
		# shellcheck disable=SC2086 # two words
		man_page $name >page 2>err || fail "no page of '$name': $(cat err)"
		grep -q '^\$ longpole' page || grep -q '^	longpole' page || grep -q '^source' page || fail "'$name' has no example"
		for title in NAME SYNOPSIS DESCRIPTION OPTIONS 'EXIT STATUS' EXAMPLES; do
			[[ $(grep -c "^# $title$" page) == 1 ]] || fail "'$name' has not one $title"
		done
		if command -v scdoc >/dev/null; then
			scdoc <page >out 2>err || fail "'$name': $(cat err)"
		fi
	done < <(jq -r '.commands[].name' help.json)
	for name in "$LONGPOLE_SOURCE"/doc/man/*.scd; do
		name=$(basename "$name" .1.scd) name=${name#longpole} name=${name#-}
		jq -e --arg n "${name//-/ }" 'any(.commands[]; .name == $n)' help.json >/dev/null || fail "longpole-$name.1.scd is of no command"
	done
}

# A page says what the tables say: an option with its letter, value and choices; what is related; who gives exit status 1.
test_a_page_has_what_the_tables_say() {
	local line
	man_page locks >locks
	for line in '*-n*, *--limit*=_N_' '*--sort*=_KEY_' '*--from*=_TIME_' '# THE WINDOW' '# THE TRACE' '*127*'; do
		grep -qFx "$line" locks || fail "locks has no line '$line'"
	done
	[[ $(grep -A1 -F '*--sort*=' locks) == *'; one of path, gain, wait'* ]] || fail "no choices of --sort: $(grep -A1 -F '*--sort*' locks)"
	[[ $(grep -A1 -F '*--mode*=_MODE_' locks) != *'one of'* ]] || fail "--mode's choices are said twice"
	grep -q '^\*1\*$' locks && fail "locks has no gate"
	for line in diff queues noc; do man_page $line >$line; done
	man_page >longpole
	[[ $(grep -A1 '^\*1\*$' diff) == *'*--fail-on*'* ]] || fail "diff does not say what exit status 1 is"
	grep -qFx '*--histogram*[=_PATTERN_\]' queues || fail "a value that may be left out"
	grep -q '^\*longpole\*(1), .*\*longpole-record\*(1)' diff || fail "diff names longpole record, and not as related"
	if command -v scdoc >/dev/null && command -v man >/dev/null; then
		man_page noc sim | scdoc >sim.1
		MANWIDTH=200 man -l ./sim.1 >sim 2>/dev/null || skip "man renders nothing here"
		grep -qF "printf '%s\n' 'router 0" sim || fail "a backslash of an example is lost: $(grep -F printf sim)"
	fi
	grep -qFx '*longpole-noc-sim*(1)' noc || fail "noc does not list its verbs"
	grep -qFx '*longpole-whatif*(1)' longpole || fail "longpole(1) does not list its commands"
	! longpole help --manual="$LONGPOLE_SOURCE/README.md" report >out 2>err || fail "a page without examples was made"
	grep -q 'needs .# EXAMPLES' err || fail "says: $(cat err)"
	longpole help help >out
	! grep -q -- --manual out || fail "--manual is for the build"
}

# What a person wrote names no option that no command has.
test_pages_name_only_options_that_exist() {
	local page option
	longpole help --json | jq -r '.commands[].options[].name' | sort -u >all
	printf '%s\n' version px-default tool sync-binlog time >>all # longpole's own, and other programs'
	for page in "$LONGPOLE_SOURCE"/doc/man/*.scd; do
		while read -r option; do
			grep -qFx -- "$option" all || fail "$(basename "$page") has --$option, no command has"
		done < <(grep -oE '(^|[^a-z-])longpole [^*`]*--[a-z][a-z-]*|\*--[a-z][a-z-]*' "$page" | grep -oE -- '--[a-z][a-z-]*' | sed 's/^--//' | sort -u)
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
	cp "$LONGPOLE_SOURCE/tests/fuzz/corpus/pytorch/whole.json" train.json
	mkdir traces
	cp train.json traces/rank0.json
	echo '{"jsonrpc":"2.0","id":1,"method":"ping"}' >messages.json
	ln -s "$work/bin/ladder" ladder
	make_annotated
	make_smait run.2
	cp "$LONGPOLE_SOURCE/tests/golden/screens/mpi.lpt" ring.lpt
	for page in "$LONGPOLE_SOURCE"/doc/man/*.scd; do
		while read -r line; do
			nr=$((nr + 1))
			(set -o pipefail; eval "$line") >out 2>err </dev/null ||
				{ cat err >&2; fail "$(basename "$page"): $line"; }
		done < <(sed -n '/^# EXAMPLES/,$s/^\$ //p' "$page")
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
	completes longpole report 'qu'
	[[ ${COMPREPLY[*]} == queues ]] || fail "longpole report qu<TAB>: ${COMPREPLY[*]}"
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
