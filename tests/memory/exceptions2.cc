/* SPDX-License-Identifier: Apache-2.0 */
/* exceptions2.cc - the other file with the same templates. */
#include <vector>
template<class T> T total(const std::vector<T>&v);
int other(){ std::vector<int> v(10,3); int s=0; for(auto x:v) s+=x; return s; }
