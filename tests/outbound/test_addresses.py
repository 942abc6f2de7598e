"""Which addresses are public, private, or never connected to, one by one."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.outbound.addresses import METADATA, PRIVATE, SPECIAL, is_reachable

CLOUDS = {
    "AWS, Google, Azure and most others": "169.254.169.254",
    "the same, IPv6": "fe80::a9fe:a9fe",
    "ECS tasks": "169.254.170.2",
    "EKS pods": "169.254.170.23",
    "EKS pods, IPv6": "fd00:ec2::23",
    "AWS, IPv6": "fd00:ec2::254",
    "Google, IPv6": "fd20:ce::254",
    "Azure, the host agent": "168.63.129.16",
    "Alibaba": "100.100.100.200",
    "Alibaba, IPv6": "fd00:100::100:200",
    "Oracle, IPv6": "fd00:c1::a9fe:a9fe",
    "Oracle Classic": "192.0.0.192",
    "Scaleway": "169.254.42.42",
    "Scaleway, IPv6": "fd00:42::42",
    "Linode, IPv6": "fd00:a9fe:a9fe::1",
    "Tencent": "169.254.0.23",
    "Volcengine": "100.96.0.96",
    "UCloud": "100.80.80.80",
}


def spellings(address: str) -> list[str]:
    """The address itself; where it is an IPv4 one, also every IPv6 one that leads to it."""
    if ":" in address:
        return [address, address.upper(), str(ipaddress.ip_address(address).exploded), f"{address}%1"]
    number = int(ipaddress.IPv4Address(address))
    v6 = [
        0xFFFF << 32 | number,  # mapped
        0xFFFF0000 << 32 | number,  # translated
        number,  # compatible
        0x64FF9B << 96 | number,  # NAT64
        0x64FF9B0001 << 80 | number,  # NAT64, local
        0x2002 << 112 | number << 80 | 1,  # 6to4
        0x20010000 << 96 | number << 64,  # Teredo, the server
        0x20010000 << 96 | 0x5DB8D822 << 64 | (number ^ 0xFFFFFFFF),  # Teredo, the client
        0x26064700 << 96 | 0x5EFE << 32 | number,  # ISATAP
        0x26064700 << 96 | 0x02005EFE << 32 | number,
    ]
    return [address, *[str(ipaddress.IPv6Address(one)) for one in v6]]


# No host that anybody means, allowed or not.
NOBODY = """
0.0.0.0 0.1.2.3 192.0.0.1 192.0.2.1 192.88.99.1 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.250 240.0.0.1
255.255.255.255 :: ::8.8.8.8 64:ff9b:1::808:808 100::1 100:0:0:1::1 2001::1 2001:2::1 2001:10::1 2001:20::1
2001:db8::1 2620:4f:8000::1 3fff::1 4000::1 5f00::1 fe80::1 fec0::1 feff::1 ff02::1 localhost 127.1 8.8.8.8/32
"""
INSIDE = """
10.0.0.1 127.0.0.1 172.31.0.1 192.168.0.1 198.18.0.1 100.64.0.1 ::1 fc00::1 fd12::1 ::ffff:10.0.0.1
64:ff9b::10.0.0.1 2002:a00:1::1
"""
PUBLIC = """
8.8.8.8 93.184.216.34 172.32.0.1 100.128.0.1 168.63.129.17 192.0.1.1 2606:4700::1111 ::ffff:8.8.8.8
64:ff9b::8.8.8.8 2002:808:808::1 2001:4860::8888
"""
CASES = [(one, False, False) for cloud in CLOUDS.values() for one in spellings(cloud)]
CASES += [(one, False, False) for one in ("", *NOBODY.split())]
CASES += [(one, False, True) for one in INSIDE.split()]
CASES += [(one, True, True) for one in PUBLIC.split()]


@pytest.mark.parametrize(("address", "usually", "with_private"), CASES)
def test_what_is_reached_usually_and_where_private_addresses_are_allowed(
    address: str, usually: bool, with_private: bool
) -> None:
    assert (is_reachable(address), is_reachable(address, allow_private=True)) == (usually, with_private)


@given(st.ip_addresses())
def test_nothing_that_python_knows_to_be_special_is_public(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if is_reachable(str(address)):
        held = isinstance(address, ipaddress.IPv6Address) and (address.ipv4_mapped or address.sixtofour)
        assert held or address.is_global or str(address).startswith("64:ff9b::")
        special = [address.is_multicast, address.is_loopback, address.is_link_local, address.is_unspecified]
        assert not any(special)


@pytest.mark.parametrize("block", METADATA + SPECIAL + PRIVATE)
def test_no_block_of_the_tables_has_a_public_edge(block: str) -> None:
    found = ipaddress.ip_network(block)
    assert [str(one) for one in (found[0], found[-1]) if is_reachable(str(one))] == []
