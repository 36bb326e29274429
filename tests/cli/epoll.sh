# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# epoll.sh - what an epoll's wait was for, however the descriptors were registered.

# No epoll_ctl() was called: the kernel is asked what is watched.
test_epoll_unseen() {
	longpole record -q -o unseen.lpt "$LONGPOLE_BUILD/tests/target/epoll_same" --register=unseen >out 2>&1 || fail "$(<out)"
	longpole dump unseen.lpt >dump.txt 2>err || fail "$(<err)"
	(($(grep -c 'poll_end object=[1-9][0-9]*(pipe ' dump.txt) >= 20)) || fail "it is not known which pipe was ready: $(grep poll_end dump.txt | head -n 3)"
}
