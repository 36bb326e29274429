/* SPDX-License-Identifier: Apache-2.0 */
/* ip.c - fragmentation, RFC 791 section 3.2: offsets count units of 8 bytes. */
#include "platform/ip.h"

uint32_t platform_ip_fragment_bytes(uint32_t mtu_bytes)
{
	return (mtu_bytes - PLATFORM_IP_HEADER) / 8 * 8;
}

uint32_t platform_ip_nr_fragments(uint32_t data_bytes, uint32_t mtu_bytes)
{
	uint32_t most = platform_ip_fragment_bytes(mtu_bytes);
	if (data_bytes + PLATFORM_IP_HEADER <= mtu_bytes)
		return 1;
	/* The last one may be as long as the link takes. */
	uint32_t last = mtu_bytes - PLATFORM_IP_HEADER;
	return 1 + (data_bytes - last + most - 1) / most;
}

uint32_t platform_ip_fragment_data(uint32_t data_bytes, uint32_t mtu_bytes, uint32_t i)
{
	uint32_t nr = platform_ip_nr_fragments(data_bytes, mtu_bytes);
	uint32_t most = platform_ip_fragment_bytes(mtu_bytes);
	return i + 1 < nr ? most : data_bytes - (nr - 1) * most;
}
