/* SPDX-License-Identifier: Apache-2.0 */
/* ip.h - sizes of IP packets and fragments (RFC 791). Rules only, no time. Private to the layer. */
#ifndef LONGPOLE_PLATFORM_IP_H
#define LONGPOLE_PLATFORM_IP_H

#include <stdint.h>

enum { PLATFORM_IP_HEADER = 20, PLATFORM_TCP_HEADER = 20, PLATFORM_UDP_HEADER = 8 };

/* Data bytes of all fragments but the last: a multiple of 8. mtu_bytes: at least 68. */
uint32_t platform_ip_fragment_bytes(uint32_t mtu_bytes);
/* How many packets carry that much data (with the transport's header). */
uint32_t platform_ip_nr_fragments(uint32_t data_bytes, uint32_t mtu_bytes);
/* Data bytes of fragment i. */
uint32_t platform_ip_fragment_data(uint32_t data_bytes, uint32_t mtu_bytes, uint32_t i);

#endif
