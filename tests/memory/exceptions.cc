/* SPDX-License-Identifier: Apache-2.0 */
/* exceptions.cc - unwinding through recorded code, threads, templates in two files. */
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>
#include <map>
#include <thread>
#include <atomic>
#include <memory>
#include <algorithm>
struct G { int*p; G(int*q):p(q){++*p;} ~G(){--*p;} };
static std::atomic<int> cnt; static int live;
__attribute__((noinline)) int thrower(int n){ G g(&live); if(n==0) throw std::runtime_error("x"); try { return thrower(n-1)+1; } catch(const std::logic_error&){ return -1; } }
template<class T> T total(const std::vector<T>&v){ T s{}; for(auto x:v) s+=x; return s; }
int main(){ int z=0; for(int i=0;i<20;i++) try { z+=thrower(i%5); } catch(std::exception&e){ z+=e.what()[0]; }
 std::map<std::string,int> m; for(int i=0;i<200;i++) m[std::to_string(i*37%101)]+=i; std::vector<double> v(300); for(size_t i=0;i<v.size();i++) v[i]=(i*17)%23; std::sort(v.begin(),v.end());
 std::vector<std::thread> t; for(int k=0;k<4;k++) t.emplace_back([k]{ for(int i=0;i<1000;i++) cnt+=k; auto p=std::make_shared<int>(k); cnt+=*p; }); for(auto&x:t) x.join();
 std::printf("%d %zu %f %d %d\n",z,m.size(),total(v),(int)cnt,live); return 0; }
