#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [NAME...] - liblongpole as its users meet it, installed: headers, what it exports and needs, its ABI, the examples.
# `run.sh --update` writes exports.txt and longpole.abi anew: look at the difference, and at what src/api/README.md says of it.
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
source_dir=$(readlink -f "$here/../..")
: "${LONGPOLE_BUILD:=$source_dir/build}"
export LC_ALL=C.UTF-8 XDG_STATE_HOME=/nonexistent
scratch=$(mktemp -d)
mkdir "$scratch/locale"
trap 'rm -rf "$scratch"' EXIT
DESTDIR=$scratch/root meson install -C "$LONGPOLE_BUILD" --no-rebuild --quiet >"$scratch/log" 2>&1 || { echo "not ok install: $(tail -n 1 "$scratch/log")"; exit 1; }
pc=$(find "$scratch/root" -name longpole.pc)
export PKG_CONFIG_SYSROOT_DIR=$scratch/root PKG_CONFIG_PATH=${pc%/*}
library=$(find "$scratch/root" -name liblongpole.so)
LD_LIBRARY_PATH=$(dirname "$library")
export LD_LIBRARY_PATH
longpole=$(find "$scratch/root" -path '*/bin/longpole')
PYTHONPATH=$(dirname "$(find "$scratch/root" -name longpole.py)")
export PYTHONPATH PYTHONDONTWRITEBYTECODE=1
screens=$source_dir/tests/golden/screens
names=("$@")

result() { # NAME, what is wrong
	if [[ -z $2 ]]; then printf 'ok %s\n' "$1"; else printf 'not ok %s: %s\n' "$1" "${2//$'\n'/; }"; fi
}
# try NAME FUNCTION ARGUMENT... - if it was asked for.
try() {
	((!${#names[@]})) || [[ " ${names[*]} " == *" $1 "* ]] || return 0
	result "$1" "$("${@:2}" 2>&1)"
}
flags() { pkg-config "--$1" longpole; }

header() { # COMPILER LANGUAGE STANDARD
	local warn=(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror) option
	command -v "$1" >/dev/null || return 0
	for option in -O0 -O2; do
		# shellcheck disable=SC2046 # words
		"$1" -x "$2" "-std=$3" "${warn[@]}" "$option" $(flags cflags) "$here/header.c" -x none $(flags libs) -o "$scratch/header" 2>&1 | head -3
		[[ -f $scratch/header ]] || return 0
		timeout 60 "$scratch/header" "$scratch/header.lpt" || printf '%s %s: exit status %s\n' "$1" "$option" $?
		rm -f "$scratch/header" "$scratch/header.lpt"
	done
}

# One symbol more is one more to keep.
exported() { nm -D --defined-only "$library" | awk '$2 != "A" {print $3}' | sed 's/@@\?/ /' | LC_ALL=C sort; }
exports() {
	exported | diff "$here/exports.txt" - | sed -n 's/^< /missing: /p; s/^> /not listed: /p'
	sed -n 's/^[a-z].*[ *]\(longpole_[a-z_]*\)(.*$/\1/p' "$source_dir"/include/longpole/{trace,analysis}.h | LC_ALL=C sort -u |
		diff <(exported | cut -d' ' -f1 | LC_ALL=C sort -u) - | sed -n 's/^< /in no header: /p; s/^> /not exported: /p'
}

# What else a program gets that asks for it: no library that reads other people's programs.
needs() {
	readelf -d "$library" | grep NEEDED | grep -vE 'lib(c|m|jansson|zstd|xxhash)\.so|ld-linux'
	readelf -d "$library" | grep -q 'SONAME.*\[liblongpole\.so\.1\]' || printf 'its name is not liblongpole.so.1\n'
	! readelf -d "$library" | grep TEXTREL
}

# What the headers describe, of what is exported: handles stay opaque.
abi_description() {
	abidw --headers-dir "$source_dir/include/longpole" --drop-private-types --no-show-locs --no-corpus-path --no-comp-dir-path \
		--exported-interfaces-only --no-elf-needed --no-parameter-names --type-id-style hash "$library"
}
# (two descriptions: against the library itself abidiff takes all that has no place in a file for private, and passes it over)
abi() {
	abi_description >"$scratch/now.abi"
	abidiff "$here/longpole.abi" "$scratch/now.abi" | head -20
	# does it see a member that moved?
	sed "s/layout-offset-in-bits='64'/layout-offset-in-bits='128'/" "$here/longpole.abi" >"$scratch/moved.abi"
	! abidiff "$scratch/moved.abi" "$scratch/now.abi" >/dev/null || printf 'abidiff sees no change\n'
}

# What programs rely on that were linked with the last version that is out.
abi_of_version() { # TAG
	git -C "$source_dir" show "$1:tests/api/longpole.abi" >"$scratch/released.abi" || return
	[[ -f $scratch/now.abi ]] || abi_description >"$scratch/now.abi"
	abidiff --no-added-syms --suppressions "$here/grown.suppr" "$scratch/released.abi" "$scratch/now.abi" | head -20
	# does it see a member that moved, and a function that is gone?
	sed "s/layout-offset-in-bits='64'/layout-offset-in-bits='128'/" "$scratch/released.abi" >"$scratch/moved.abi"
	! abidiff --no-added-syms --suppressions "$here/grown.suppr" "$scratch/moved.abi" "$scratch/now.abi" >/dev/null || printf 'abidiff sees no change\n'
	sed "/elf-symbol name='longpole_trace_open'/d; /<function-decl name='longpole_trace_open'/,/<\/function-decl>/d" "$scratch/now.abi" >"$scratch/gone.abi"
	! abidiff --no-added-syms --suppressions "$here/grown.suppr" "$scratch/released.abi" "$scratch/gone.abi" >/dev/null || printf 'abidiff sees no function go\n'
}

# Do both examples say what the commands say, and end as they should?
example_of() { # TRACE STATUS SCENARIO
	local status name=${1##*/} run
	"$longpole" report --json "$1" >"$scratch/report" 2>/dev/null || printf '%s: report fails\n' "$name"
	"$longpole" whatif --json "$1" "$3" >"$scratch/whatif" 2>/dev/null || printf '%s: whatif fails\n' "$name"
	"$here/expected.py" "$scratch/report" "$scratch/whatif" >"$scratch/expected"
	[[ $(wc -l <"$scratch/expected") -ge 3 ]] || printf '%s: nothing is expected\n' "$name"
	for run in "$scratch/long_pole" "$source_dir/examples/long_pole.py"; do
		status=0
		timeout 120 "$run" "$1" "$3" >"$scratch/said" 2>"$scratch/err" || status=$?
		((status == $2)) || printf '%s %s: exit status %s: %s\n' "${run##*/}" "$name" "$status" "$(<"$scratch/err")"
		diff "$scratch/expected" "$scratch/said" | head -3
	done
}
# What is no trace, or no scenario, is said.
example_refuses() { # STATUS WORDS ARGUMENT...
	local status=0
	timeout 60 "$scratch/long_pole" "${@:3}" >"$scratch/said" 2>"$scratch/err" || status=$?
	((status == $1)) || printf '%s: exit status %s\n' "$3" "$status"
	grep -qF "$2" "$scratch/err" || printf '%s: says %s\n' "$3" "$(<"$scratch/err")"
}
examples() {
	# shellcheck disable=SC2046 # words
	"${CC:-cc}" -Wall -Wextra -Werror "$source_dir/examples/long_pole.c" $(flags cflags) $(flags libs) -o "$scratch/long_pole" || return
	local name
	for name in mutex pool pigz thr sh; do
		example_of "$screens/$name.lpt" 0 '#1=-50%'
	done
	example_of "$source_dir/tests/golden/lock.lpt" 1 '#1=-25%' # records were lost
	head -c 30000 "$screens/pool.lpt" >"$scratch/cut.lpt"
	example_of "$scratch/cut.lpt" 1 '#1=-50%'
	example_refuses 2 'does not begin with "longpole"' "$here/run.sh"
	example_refuses 2 "'#77'" "$screens/pool.lpt" '#77=-50%'
	example_refuses 2 'scenarios:1' "$screens/pool.lpt" 'scael x=-50%'
}

# The package: answers of the commands, errors, records, and what a program says of itself while it is recorded.
python_package() {
	cd "$scratch" || return
	timeout 300 python3 "$here/package.py" "$longpole" "$screens/pool.lpt" 2>&1 | tail -3
	env -u LD_LIBRARY_PATH timeout 60 python3 -c 'import longpole; longpole.open("'"$screens"'/pool.lpt").close()' || printf 'it does not find the library beside itself\n'
	LIBLONGPOLE=/nonexistent timeout 60 python3 -c 'import longpole
with longpole.state("a"): pass
try: longpole.open("x")
except OSError as e: assert "LIBLONGPOLE" in str(e)' || printf 'without the library\n'
}

# A program that speaks German writes 1,5: scenarios and answers have 1.5 all the same.
in_german() {
	local try='import locale, runpy; locale.setlocale(locale.LC_ALL, "de_DE.UTF-8"); runpy.run_path("'$source_dir/examples/long_pole.py'", run_name="__main__")' name
	for name in pool mutex; do
		LOCPATH=$scratch/locale timeout 120 python3 -c "$try" "$screens/$name.lpt" '#1=x0.5' >"$scratch/german" 2>&1 || printf 'exit status %s\n' $?
		timeout 120 "$source_dir/examples/long_pole.py" "$screens/$name.lpt" '#1=x0.5' | diff - "$scratch/german" | head -3
	done
}

# The page's simulator makes a trace of which the answer is known: 300 ns a packet to pack it.
howto() {
	sed -n '/^```c$/,/^```$/p' "$source_dir/doc/howto/use-the-library.md" | sed '/^```/d' >"$scratch/link.c"
	# shellcheck disable=SC2046 # words
	"${CC:-cc}" -Wall -Wextra -Werror "$scratch/link.c" $(flags cflags) $(flags libs) -o "$scratch/link" || return
	timeout 60 "$scratch/link" "$scratch/link.lpt" || printf 'exit status %s\n' $?
	"$longpole" report --json "$scratch/link.lpt" >"$scratch/report"
	jq -e '.result | .elapsed_ns == 300200 and .parts[0].name == "sender: pack" and .parts[0].path_ns == 300000' "$scratch/report" >/dev/null ||
		printf 'the answer is %s\n' "$(jq -c '.result | .elapsed_ns, .parts[0].name, .parts[0].path_ns' "$scratch/report")"
}

clang=$(compgen -c clang- | grep -E '^clang-[0-9]+$' | sort -V | tail -n 1)
if [[ ${1:-} == --update ]]; then
	exported >"$here/exports.txt"
	abi_description >"$here/longpole.abi"
	exit
fi
try header-c11 header "${CC:-gcc}" c c11
try header-c++17 header "${CXX:-g++}" c++ c++17
if [[ -n $clang ]]; then
	try header-clang header "$clang" c c11
	try header-clang++ header "${clang/clang/clang++}" c++ c++17
else
	echo "skip header-clang: no clang"
fi
try exports exports
try needs needs
if command -v abidiff >/dev/null; then
	try abi abi
	tag=$(git -C "$source_dir" describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null) || true
	if [[ $tag ]]; then
		try abi-of-the-last-version abi_of_version "$tag"
	else
		echo "skip abi-of-the-last-version: no version is tagged (v0.1.0)"
	fi
else
	echo "skip abi: no abidiff (Debian's abigail-tools)"
fi
try examples examples
try python python_package
try howto howto
if localedef -c -i de_DE -f UTF-8 "$scratch/locale/de_DE.UTF-8" >/dev/null 2>&1 || [[ -d $scratch/locale/de_DE.UTF-8 ]]; then
	try locale in_german
else
	echo "skip locale: no German one can be made (Debian's locales)"
fi
