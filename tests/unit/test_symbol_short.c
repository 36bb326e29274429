/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_symbol_short.c - names of real programs, as gcc 12, clang 14 and rustc 1.95 make them and
 * the demangler says them, and what a programmer would call them.
 */
#include "symbol/symbol.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#define STRING  "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"
#define VECTOR  "std::vector<int, std::allocator<int> >"
#define BIND    "std::_Bind<main::{lambda(int)#1} (int)>"
#define TASK(f) "std::__future_base::_Task_state<" f ", std::allocator<int>, int ()>"
#define UNIQUE                                                                                     \
	"std::unique_ptr<std::__future_base::_Result<int>, "                                       \
	"std::__future_base::_Result_base::_Deleter>"
#define SETTER(f)                                                                                  \
	"std::__future_base::_Task_setter<" UNIQUE ", " TASK(f) "::_M_run()::{lambda()#1}, int>"
#define SUBMIT                                                                                     \
	"ThreadPool::submit<main::{lambda(int)#1}, int>(main::{lambda(int)#1}&&, "                 \
	"int&&)::{lambda()#1}"
#define SPAWNED   "std::thread::lifecycle::spawn_unchecked<t::main::{closure#1}::{closure#0}, ()>"
#define CALL_ONCE " as core::ops::function::FnOnce<()>>::call_once"

static const struct {
	const char *name, *called;
	bool plumbing;
} given[] = {
	/* C */
	{"deflate", "deflate", false},
	{"main.cold", "main", false},
	{"work.constprop.0.isra.0", "work", false},
	{"__libc_start_main_impl", "__libc_start_main_impl", true},
	{"__libc_start_call_main", "__libc_start_call_main", true},
	{"start_thread", "start_thread", true},
	{"__GI___clone3", "__GI___clone3", true},
	{"start_threads", "start_threads", false},
	{"_start", "_start", true},
	/* C++: the program's own */
	{"Job::run(int)", "Job::run", false},
	{"Job::operator()(int) const", "Job::operator()", false},
	{"ThreadPool::~ThreadPool()", "ThreadPool::~ThreadPool", false},
	{"ThreadPool::ThreadPool(int)::{lambda()#1}::operator()() const",
		"ThreadPool::ThreadPool::lambda", false},
	{"ThreadPool::ThreadPool(int)::{lambda()#1}::operator()() "
	 "const::{lambda()#2}::operator()() "
	 "const",
		"ThreadPool::ThreadPool::lambda::lambda#2", false},
	{SUBMIT "::operator()() const", "ThreadPool::submit<..>::lambda", false},
	{"std::future<std::result_of<int (int)>::type> ThreadPool::submit<main::{lambda(int)#1}, "
	 "int>(main::{lambda(int)#1}&&, int&&)",
		"ThreadPool::submit<..>", false},
	{"net::Cache<" STRING ", net::Request>::get(" STRING " const&)", "net::Cache<..>::get",
		false},
	{"net::Cache<int, long>::get(int const&)", "net::Cache<int, long>::get", false},
	{"net::(anonymous namespace)::hidden(int)", "net::hidden", false},
	{"net::to_string[abi:cxx11](int)", "net::to_string", false},
	{"unsigned long total<" VECTOR " >(" VECTOR " const&)", "total<..>", false},
	{"main::$_1::operator()(int) const", "main::lambda#2", false}, /* clang */
	{"Matrix::operator double() const", "Matrix::operator double", false},
	{"operator new(unsigned long)", "operator new", false},
	{"bool net::operator< <int>(net::Id<int> const&, net::Id<int> const&)",
		"net::operator< <int>", false},
	{"Arena<std::allocator<int> >::take()", "Arena<..>::take", false},
	{"Ring<Order>::push(Order const&) [clone .part.0]", "Ring<Order>::push", false},
	/* C++: the library's, about the program's types */
	{VECTOR "::push_back(int const&)", "std::vector<int>::push_back", false},
	{STRING "::_M_append(char const*, unsigned long)", "std::string::_M_append", false},
	{"std::_Function_handler<void (), " SUBMIT ">::_M_manager(std::_Any_data&, std::_Any_data "
	 "const&, std::_Manager_operation)",
		"std::_Function_handler<..>::_M_manager", false},
	{"void std::__introsort_loop<__gnu_cxx::__normal_iterator<int*, " VECTOR " >, long, "
	 "__gnu_cxx::__ops::_Iter_comp_iter<work(" VECTOR "&, int)::{lambda(int, int)#1}> >("
	 "__gnu_cxx::__normal_iterator<int*, " VECTOR " >, long)",
		"std::__introsort_loop<..>", false},
	/* C++: plumbing */
	{"std::_Function_handler<void (), " SUBMIT ">::_M_invoke(std::_Any_data const&)",
		"ThreadPool::submit<..>::lambda", true},
	{"int std::__invoke_impl<int, main::{lambda(int)#2}&, int>(std::__invoke_other, "
	 "main::{lambda(int)#2}&, int&&)",
		"main::lambda#2", true},
	{"int std::__invoke_impl<int, int (*&)(" VECTOR "&, int), " VECTOR "&, int&>("
	 "std::__invoke_other, int (*&)(" VECTOR "&, int), " VECTOR "&, int&)",
		"std::__invoke_impl<..>", true},
	{"int " BIND "::operator()<, int>()", "main::lambda", true},
	{"std::_Function_handler<" UNIQUE
	 " (), " SETTER(BIND) ">::_M_invoke(std::_Any_data const&)",
		"main::lambda", true},
	{TASK("render(Scene const&, int)::{lambda(int)#1}") "::_M_run()", "render::lambda", true},
	{"std::thread::_State_impl<std::thread::_Invoker<std::tuple<Worker, int> > >::_M_run()",
		"Worker", true},
	{"std::__future_base::_Async_state_impl<std::thread::_Invoker<std::tuple<main::{lambda()#3}"
	 "> "
	 ">, unsigned long>::_M_run()",
		"main::lambda#3", true},
	{"void (std::__future_base::_Async_state_impl<std::thread::_Invoker<std::tuple<"
	 "main::{lambda()#3}> >, unsigned long>::*)()",
		"main::lambda#3", false},
	{"void (Job::*)(int)", "Job::*", false},
	{"std::packaged_task<int (int)>::operator()(int)", "std::packaged_task<..>::operator()",
		true},
	{"execute_native_thread_routine", "execute_native_thread_routine", true},
	/* Rust */
	{"t::main", "t::main", false},
	{"t::main::{closure#1}::{closure#0}", "t::main::lambda#2::lambda", false},
	{"t::main::{{closure}}", "t::main::lambda", false}, /* its old names */
	{"<t::Pool>::submit::<t::main::{closure#0}>", "t::Pool::submit<..>", false},
	{"<t::B<u32> as t::Work>::go", "t::B<u32>::go", false},
	{"t::deep::<impl t::Work for t::deep::A>::go", "t::deep::A::go", false},
	{"<&str as core::fmt::Display>::fmt", "<&str>::fmt", false},
	{"<[(alloc::string::String, u32)]>::sort_by::<t::main::{closure#3}>", "<..>::sort_by<..>",
		false},
	{"<t::main::{closure#0}" CALL_ONCE "::{shim:vtable#0}", "t::main::lambda", false},
	{"std::sys::backtrace::__rust_begin_short_backtrace::<t::main::{closure#1}::{closure#0}, "
	 "()>",
		"t::main::lambda#2::lambda", true},
	{"std::sys::backtrace::__rust_begin_short_backtrace",
		"std::sys::backtrace::__rust_begin_short_backtrace", true},
	{"<core::panic::unwind_safe::AssertUnwindSafe<" SPAWNED
	 "::{closure#1}::{closure#0}>" CALL_ONCE,
		"t::main::lambda#2::lambda", true},
	{"<alloc::boxed::Box<dyn core::ops::function::FnOnce<(), Output = ()> + "
	 "core::marker::Send>" CALL_ONCE,
		"alloc::boxed::Box<..>", true},
	{"<alloc::boxed::Box<t::Big> as core::ops::drop::Drop>::drop",
		"alloc::boxed::Box<t::Big>::drop", false},
	{"core::ops::function::FnOnce::call_once{{vtable.shim}}",
		"core::ops::function::FnOnce::call_once{{vtable.shim}}", true},
	{"std::rt::lang_start::<()>::{closure#0}", "std::rt::lang_start<..>::lambda", true},
	/* others' languages, and no names */
	{"main.(*Server).handle.func1", "main.(*Server).handle.func1", false},
	{"LazyCompile:*render /app/page.js:12:5", "LazyCompile:*render /app/page.js:12:5", false},
	{"<module>", "<module>", false},
	{"f<", "f<", false},
	{"", "", false},
};

static void threads_are_called_after_what_they_are(void **state)
{
	static const struct {
		const char *name, *file, *words;
	} cases[] = {
		{"node::(anonymous namespace)::PlatformWorkerThread(void*)", "", "V8 worker"},
		{"node::worker::Worker::StartThread(v8::FunctionCallbackInfo<v8::Value> const&)::"
		 "{lambda(void*)#1}::_FUN(void*)",
			"", "worker thread"},
		{"node::worker::Worker::StartThreads(int)", "", NULL},
		{"worker", "../deps/uv/src/threadpool.c", "libuv pool"},
		{"worker", "/home/me/threadpool.c", NULL}, /* a program's own */
		{"worker", "", NULL},
		{"worker_of", "../deps/uv/src/threadpool.c", NULL},
		{"", "", NULL},
	};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(cases); i++) {
		const char *words = symbol_start_words(cases[i].name, cases[i].file);
		assert_string_equal(words ? words : "-", cases[i].words ? cases[i].words : "-");
	}
}

static void names_are_what_one_calls_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(given); i++) {
		struct base_str s = {0};
		symbol_short_add(&s, given[i].name, false);
		assert_string_equal(base_str_text(&s), given[i].called);
		assert_int_equal(symbol_is_plumbing(given[i].name), given[i].plumbing);
		base_str_fini(&s);
	}
}

static void unicode_says_it_shorter(void **state)
{
	struct base_str s = {0};
	(void)state;
	base_str_add(&s, "in ");
	symbol_short_add(&s, SUBMIT, true);
	assert_string_equal(base_str_text(&s), "in ThreadPool::submit<\xe2\x80\xa6>::\xce\xbb");
	base_str_fini(&s);
}

static void names_in_texts(void **state)
{
	static const struct {
		const char *text, *shorter;
	} text[] = {
		{"running " SUBMIT "::operator()() const and work(" VECTOR "&, int), sorting",
			"running ThreadPool::submit<..>::lambda and work, sorting"},
		{"mutex of f<int, " VECTOR ">(int) (pool.cc:12), inlined g(int) (x.h:3)",
			"mutex of f<..> (pool.cc:12), inlined g (x.h:3)"},
		{"read of file /tmp/a(1)<2>.txt", "read of file /tmp/a(1)<2>.txt"},
		{"waits < 5 and > 3", "waits < 5 and > 3"},
		{"", ""},
	};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(text); i++) {
		struct base_str s = {0};
		symbol_short_add_text(&s, text[i].text, false);
		assert_string_equal(base_str_text(&s), text[i].shorter);
		base_str_fini(&s);
	}
}

/* Brackets without end, as many as a name may have, and more: each is soon done with. */
static void what_is_no_name_stays(void **state)
{
	static const char *const piece[] = {"<", "<::", "a<(", "operator", "{lambda(", " (", "::"};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(piece); i++)
		for (size_t bytes = 1000; bytes < 50000; bytes *= 7) {
			struct base_str s = {0}, once = {0}, twice = {0};
			while (s.length < bytes)
				base_str_add(&s, piece[i]);
			symbol_short_add(&once, base_str_text(&s), false);
			symbol_short_add_text(&twice, base_str_text(&s), false);
			(void)symbol_is_plumbing(base_str_text(&s));
			assert_true(once.length && once.length <= s.length);
			assert_true(twice.length && twice.length <= s.length);
			base_str_fini(&s);
			base_str_fini(&once);
			base_str_fini(&twice);
		}
}

static void survives_lack_of_memory(void **state)
{
	(void)state;
	bool failed = true;
	for (uint64_t n = 1; failed; n++) {
		struct base_str s = {0};
		base_alloc_fail_nth(n);
		symbol_short_add(
			&s, "t::deep::<impl t::Work for t::deep::A<" VECTOR ">>::go", false);
		symbol_short_add_text(&s, " f<int, " VECTOR ">(int) const", false);
		base_alloc_fail_nth(0);
		failed = s.failed;
		base_str_fini(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_what_one_calls_them),
		cmocka_unit_test(threads_are_called_after_what_they_are),
		cmocka_unit_test(unicode_says_it_shorter),
		cmocka_unit_test(names_in_texts),
		cmocka_unit_test(what_is_no_name_stays),
		cmocka_unit_test(survives_lack_of_memory),
	};
	return cmocka_run_group_tests_name("symbol_short", tests, NULL, NULL);
}
