"""Which addresses may be connected to, from IANA's special-purpose registries and the clouds' documentation.

An address in none of these tables is refused unless it is global unicast (so are ::/96, 64:ff9b:1::/48, fec0::/10, multicast
and everything unassigned): what is unknown is not public.
"""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

METADATA = (
    "169.254.0.0/16",  # link-local: instances, tasks and pods at nearly every cloud
    "fe80::/10",  # the same for IPv6
    "100.100.100.200/32",  # Alibaba
    "fd00:100::100:200/128",
    "168.63.129.16/32",  # Azure's host agent
    "192.0.0.192/32",  # Oracle Classic
    "fd00:c1::a9fe:a9fe/128",  # Oracle
    "fd00:ec2::/32",  # AWS: instances, pods, names and time
    "fd20:ce::/32",  # Google
    "fd00:42::42/128",  # Scaleway
    "fd00:a9fe:a9fe::/48",  # Linode
    "100.96.0.96/32",  # Volcengine
    "100.80.80.80/32",  # UCloud
)
"""Where clouds serve metadata and credentials. Some of these lie in private space, one in public."""

SPECIAL = (
    "0.0.0.0/8",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.31.196.0/24",
    "192.52.193.0/24",
    "192.88.99.0/24",
    "192.175.48.0/24",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "2001::/23",  # Teredo, benchmarks, ORCHID and other protocols
    "2001:db8::/32",
    "2620:4f:8000::/48",
    "3fff::/20",
)
"""Protocols, documentation, anycast relays, multicast, unassigned: no host that anybody means."""

PRIVATE = (
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "::1/128",
    "fc00::/7",
)

_Address = IPv4Address | IPv6Address
_Network = IPv4Network | IPv6Network

_NEVER: tuple[_Network, ...] = tuple(map(ipaddress.ip_network, METADATA + SPECIAL))
_PRIVATE: tuple[_Network, ...] = tuple(map(ipaddress.ip_network, PRIVATE))
_PUBLIC: tuple[_Network, ...] = (IPv4Network("0.0.0.0/0"), IPv6Network("2000::/3"))

_IPV4_SUFFIXES = (IPv6Network("::ffff:0:0/96"), IPv6Network("::ffff:0:0:0/96"), IPv6Network("64:ff9b::/96"))
"""Prefixes whose last four bytes are an IPv4 address: mapped, translated, NAT64."""
_SIX_TO_FOUR = IPv6Network("2002::/16")
_ISATAP = (b"\x00\x00\x5e\xfe", b"\x02\x00\x5e\xfe")
"""What precedes the IPv4 address at which a tunnel ends. Teredo's ends are in the tables."""


def is_reachable(address: str, *, allow_private: bool = False) -> bool:
    """Whether an address may be connected to: a public one of a single host, or a private one where these are allowed.

    Never one where clouds serve their metadata, nor one that stands for many hosts or none. An IPv6 address that contains an IPv4
    address is treated as that address.

    >>> [
    ...     is_reachable(one, allow_private=True)
    ...     for one in ("93.184.216.34", "::ffff:10.0.0.1", "169.254.169.254", "fe80::1")
    ... ]
    [True, True, False, False]
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(found, IPv6Address):
        translated = _find_translated(found)
        if translated is not None:
            return _is_allowed(translated, allow_private=allow_private)
        tunnel_end = IPv4Address(found.packed[12:]) if found.packed[8:12] in _ISATAP else None
        if tunnel_end is not None and not _is_allowed(tunnel_end, allow_private=allow_private):
            return False
    return _is_allowed(found, allow_private=allow_private)


def _is_allowed(address: _Address, *, allow_private: bool) -> bool:
    if any(address in block for block in _NEVER):
        return False
    if any(address in block for block in _PRIVATE):
        return allow_private
    return any(address in block for block in _PUBLIC)


def _find_translated(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that this address is another spelling of."""
    if any(address in block for block in _IPV4_SUFFIXES):
        return IPv4Address(address.packed[12:])
    return IPv4Address(address.packed[2:6]) if address in _SIX_TO_FOUR else None
