# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $trace and $work come from run.sh
# security.sh - others on the same machine, and who can set the environment.

# hostile WHY - builds hostile_ring and a program that it is to be run with.
hostile() {
	cc -O1 -D_GNU_SOURCE -I"$LONGPOLE_SOURCE/src" "$LONGPOLE_SOURCE/tests/cli/hostile_ring.c" -o hostile_ring || fail "hostile_ring.c does not build"
	export LD_PRELOAD_OF_CASE=$LONGPOLE_BUILD/src/preload/liblongpole-preload.so
	cat >victim.c <<-'END'
		#include <pthread.h>
		#include <unistd.h>
		static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
		static void *work(void *x) {
			for (int i = 0; i < 40000; i++) {
				pthread_mutex_lock(&m);
				pthread_mutex_unlock(&m);
				if (i % 4000 == 0) usleep(5000);
			}
			return x;
		}
		int main(void) {
			pthread_t t[4];
			usleep(20000);
			for (int i = 0; i < 4; i++) pthread_create(t + i, 0, work, 0);
			for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
			return 7;
		}
	END
	cc -O1 -pthread victim.c -o victim || fail "victim.c does not build"
}
# in_ring WANT FILE HOW - the victim, with that ring, ends as it should, and as many images attached.
in_ring() {
	rm -f "$2"
	expect 7 ./hostile_ring "$2" calls "$3" env LD_PRELOAD="$LD_PRELOAD_OF_CASE" ./victim
	has out "attached $1"
}

# What the environment names is a ring of ours only where nobody else can have made it.
test_ring_is_checked() {
	hostile
	mkdir -m 700 private && mkdir -m 755 public && mkdir -m 770 group
	in_ring 1 "$PWD/private/ring" quiet
	in_ring 0 "$PWD/public/ring" quiet
	in_ring 0 "$PWD/group/ring" quiet
	in_ring 0 private/ring quiet # no absolute path
	ln -s private link
	in_ring 0 "$PWD/link/ring" quiet
	expect 7 env LONGPOLE_RING=/dev/zero LD_PRELOAD="$LD_PRELOAD_OF_CASE" ./victim
	mkfifo -m 600 private/fifo
	expect 7 env LONGPOLE_RING="$PWD/private/fifo" LD_PRELOAD="$LD_PRELOAD_OF_CASE" ./victim
	head -c 100 /dev/zero >private/short && chmod 600 private/short
	expect 7 env LONGPOLE_RING="$PWD/private/short" LD_PRELOAD="$LD_PRELOAD_OF_CASE" ./victim
	: >private/empty && chmod 600 private/empty
	expect 7 env LONGPOLE_RING="$PWD/private/empty" LD_PRELOAD="$LD_PRELOAD_OF_CASE" ./victim
}

# The recorder's side may write anything at any time: the program goes on.
test_ring_may_be_hostile() {
	hostile
	mkdir -m 700 private
	in_ring 1 "$PWD/private/ring" counts
	in_ring 1 "$PWD/private/ring" all
	longpole cc -O1 -pthread victim.c -o rewritten || fail 'longpole cc fails'
	local how
	for how in quiet counts all; do
		rm -f private/ring
		expect 7 ./hostile_ring "$PWD/private/ring" memory "$how" ./rewritten
		has out 'attached 1'
	done
	rm -f private/ring && chmod 755 private
	expect 7 ./hostile_ring "$PWD/private/ring" memory quiet ./rewritten
	has out 'attached 0'
}

# A process that may change the ring's file, as any of the same user, can end the program, but not
# the recorder: its trace is whole.
test_ring_cut_short() {
	cat >cut.c <<-'END'
		#include <pthread.h>
		#include <stdlib.h>
		#include <string.h>
		#include <unistd.h>
		static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
		int main(int argc, char **argv) {
			for (int i = 0; i < 1000; i++) {
				pthread_mutex_lock(&m);
				pthread_mutex_unlock(&m);
			}
			usleep(300000);
			if (truncate(getenv("LONGPOLE_RING"), argc > 1 ? atol(argv[1]) : 0)) return 2;
			usleep(300000);
			for (int i = 0; i < 100000; i++) {
				pthread_mutex_lock(&m);
				pthread_mutex_unlock(&m);
			}
			return 7;
		}
	END
	cc -O1 -pthread cut.c -o cut || fail 'cut.c does not build'
	local bytes
	for bytes in 0 4096 20000; do
		expect 135 longpole record -o "$bytes.lpt" ./cut "$bytes" # the program's SIGBUS
		has err 'recorded' 'ring_damaged'
		expect 0 longpole report --full "$bytes.lpt"
		has out 'made no sense'
	done
}

# The child that a recorded program leaves behind has its path in the environment: another user makes that path, and waits.
test_ring_of_another_user() {
	as_root
	((EUID == 0)) || skip 'needs root, to be two users'
	command -v setpriv >/dev/null || skip 'setpriv is not here'
	hostile
	chmod 755 . "$work" "$work/tests"
	local -a alice=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	mkdir -m 700 alices && chown 65534 alices
	rm -f "alices/ring"
	local dir=/dev/shm/longpole-session-squat-$$
	"${alice[@]}" mkdir -m 700 "$dir" || fail 'cannot make a directory as somebody else'
	# The victim runs as root; the ring's maker is somebody else, and has opened it before.
	"${alice[@]}" ./hostile_ring "$dir/ring" calls quiet sleep 3 >said &
	local maker=$!
	sleep 0.5
	expect 7 env LONGPOLE_RING="$dir/ring" LD_PRELOAD="$LD_PRELOAD_OF_CASE" ./victim
	# A link to one of root's own, in a directory of somebody else's.
	wait "$maker"
	grep -q 'attached 0' said || { cat said >&2; rm -rf "$dir"; fail "root's program has attached to somebody else's ring"; }
	"${alice[@]}" rm "$dir/ring"
	"${alice[@]}" ln -s "$PWD/alices/ring" "$dir/ring"
	expect 7 env LONGPOLE_RING="$dir/ring" LD_PRELOAD="$LD_PRELOAD_OF_CASE" ./victim
	rm -rf "$dir"
}

# Nobody else can see the names, and they do not come again.
test_ring_is_private() {
	longpole record -q -o t.lpt sh -c 'stat -c "%a %u" "${LONGPOLE_RING%/*}" "$LONGPOLE_RING"; echo "$LONGPOLE_RING"' >said || fail 'does not record'
	[[ $(sed -n 1p said) == "700 $EUID" && $(sed -n 2p said) == "600 $EUID" ]] || { cat said >&2; fail 'the shared memory is not private'; }
	local ring
	ring=$(sed -n 3p said)
	[[ $ring =~ /longpole-session-[0-9]+-.{6}/ring-[0-9a-f]{32}$ ]] || fail "the ring is $ring"
	[[ ! -e ${ring%/*} ]] || fail "$ring is still there"
}

# Programs that get rights from their file believe nothing: one with the archive in it, one of longpole cc.
test_setuid_programs_attach_nowhere() {
	as_root
	((EUID == 0)) || skip 'needs root, to be two users'
	hostile
	chmod 755 . "$work" "$work/tests"
	findmnt -n -o OPTIONS -T . | grep -q nosuid && skip 'setuid programs have no rights in this directory'
	local lib=$LONGPOLE_BUILD/src/preload name
	cc -O1 -static -pthread victim.c -o wrapped -L"$lib" @"$lib/wrap.opts" 2>cc.err || { cat cc.err >&2; fail 'cannot link the archive'; }
	longpole cc -O1 -pthread victim.c -o rewritten || fail 'longpole cc fails'
	for name in wrapped rewritten; do
		chown root "$name" && chmod 4755 "$name"
	done
	mkdir -m 700 private rings && chown 65534 rings
	expect 7 ./hostile_ring "$PWD/private/ring" calls quiet ./wrapped
	has out 'attached 1'
	# A ring of root's in its own directory: only AT_SECURE tells.
	local -a alice=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	rm private/ring
	expect 7 ./hostile_ring "$PWD/private/ring" calls quiet "${alice[@]}" ./wrapped
	has out 'attached 0'
	rm private/ring
	expect 7 ./hostile_ring "$PWD/private/ring" memory quiet "${alice[@]}" ./rewritten
	has out 'attached 0'
	expect 7 "${alice[@]}" ./hostile_ring "$PWD/rings/ring" calls quiet ./wrapped
	has out 'attached 0'
	expect 7 "${alice[@]}" ./hostile_ring "$PWD/rings/ring.m" memory quiet ./rewritten
	has out 'attached 0'
}

# Every output: no link of another user's is followed, nothing that has the name is truncated, nobody else can read it.
test_outputs_follow_no_link() {
	local what
	umask 022
	printf 'precious\n' >precious
	# A second name of a file of ours (a hard link) is replaced, not truncated.
	ln precious o.lpt
	expect 0 longpole record -q -o o.lpt true
	[[ $(<precious) == precious ]] || fail 'record has truncated what has the name'
	[[ $(stat -c %a o.lpt) == 600 ]] || fail "the trace has mode $(stat -c %a o.lpt)"
	# Names that are made up on the way.
	for what in html sqlite import merge; do
		rm -f o.out o.out.part
		ln -s "$PWD/precious" o.out.part
		case $what in
		html) expect 0 longpole report --html=o.out "$trace" ;;
		sqlite) expect 0 longpole export --format=sqlite -o o.out "$trace" ;;
		import) expect 0 longpole export --format=chrome -o c.json "$trace" && expect 0 longpole import chrome -o o.out c.json ;;
		merge) longpole merge -o o.out o.lpt "$trace" >/dev/null 2>&1 ;;
		esac
		[[ $(<precious) == precious ]] || fail "$what has written through a link"
		[[ ! -e o.out || $(stat -c %a o.out) == 600 ]] || fail "$what: mode $(stat -c %a o.out)"
	done
	# A link of one's own is meant.
	: >kept && ln -s kept own
	expect 0 longpole export --format=collapsed -o own "$trace"
	[[ -L own && -s kept ]] || fail 'a link of ones own is not followed'
	expect 0 longpole record -q -o own true
	[[ -L own && -s kept ]] || fail 'record does not follow a link of ones own'
	# The descriptor itself.
	expect 0 longpole report --html=/dev/stdout "$trace"
	has out '<html'
}

test_outputs_of_root_in_a_foreign_directory() {
	as_root
	((EUID == 0)) || skip 'needs root, to be two users'
	local -a alice=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	chmod 755 . "$work" "$work/tests"
	printf 'precious\n' >precious
	mkdir -m 777 alices && chown 65534 alices
	"${alice[@]}" ln -s "$PWD/precious" alices/o.lpt || skip 'cannot be another user'
	"${alice[@]}" ln -s "$PWD/precious" alices/o.html
	"${alice[@]}" ln -s "$PWD/precious" alices/o.csv
	cd alices || fail 'no directory'
	expect 125 longpole record -q -o o.lpt true
	has err 'o.lpt is a symbolic link that another user has made'
	longpole report --html=o.html "$trace" >/dev/null 2>err && fail 'the page has followed the link'
	has err 'another user has made'
	longpole export --format=csv -o o.csv "$trace" 2>err && fail 'export has followed the link'
	has err 'another user has made'
	[[ $(<../precious) == precious ]] || fail 'a link of another user was followed'
}

# Programs in pid namespaces of their own, with /proc still ours and with their own: the numbers that they know themselves by are
# others' outside.
test_recorded_in_a_pid_namespace() {
	local -a how
	local ladder=$LONGPOLE_BUILD/tests/target/lock_ladder words wanted
	wanted=$(longpole dump --kind=lock_acquire "$trace" | grep -c lock_acquire)
	unshare --pid --fork true 2>/dev/null || unshare -Urpf true 2>/dev/null || skip 'no pid namespaces here'
	for words in '--pid --fork' '--pid --fork --mount-proc' '-Urpf' '-Urpf --mount-proc' sh; do
		read -ra how <<<"$words"
		[[ $words == sh ]] && how=(-Urpf --mount-proc sh -c '"$@"; exit $?' sh)
		unshare "${how[@]}" true 2>/dev/null || continue
		expect 0 longpole record -q -o t.lpt unshare "${how[@]}" "$ladder"
		[[ $(longpole dump --kind=lock_acquire t.lpt | grep -c lock_acquire) == "$wanted" ]] || fail "unshare $words: not all is recorded"
		expect 0 longpole report --full t.lpt
		! grep -q 'was started but not recorded' out || fail "unshare $words: a program was started but not recorded"
		longpole record -q -o own.lpt unshare "${how[@]}" sh -c 'for i in 1 2 3 4 5 6 7 8; do /bin/true; done' || fail "unshare $words sh"
		longpole report own.lpt >out 2>&1 || fail "unshare $words: no report"
	done
}

# A child has another number there than ours: who waits for it says the one, its process has the other.
test_children_in_a_pid_namespace() {
	local -a how=(unshare --pid --fork)
	unshare --pid --fork true 2>/dev/null || how=(unshare -Urpf)
	"${how[@]}" true 2>/dev/null || skip 'no pid namespaces here'
	expect 0 longpole record -q -o t.lpt "${how[@]}" sh -c '(sleep 0.2; exit 3) & wait $!; [ $? = 3 ]'
	longpole dump --kind=child_waited t.lpt | sed 's/.*pid=//' >waited
	longpole dump --definitions --kind=process t.lpt | sed 's/.* pid=\([0-9]*\).*/\1/' >known
	(($(grep -vcx 0 waited) >= 3)) || { cat waited >&2; fail "waits without a child"; }
	grep -vx 0 waited | grep -vxFf known >strangers
	[[ ! -s strangers ]] || { cat known strangers >&2; fail "children that nobody knows"; }
}
