"""Redis scripts for limits that processes share. Each script runs atomically.

There are these keys under the prefix of a model and account:

- `state`, a hash: `pause` and `closed`, the times until which no request may go out, and `pause_why` and `closed_why`, the errors
  that caused it.
- `leases`, a sorted set: the requests under way, by the time at which their place becomes free unless it is renewed.
- `waiting`, a sorted set: the processes that found no free place, by when they last asked. Whoever asked longest ago is first,
  and a process only gets a place if more are free than processes are ahead of it: asking often takes no place from others.

Times are seconds since 1970 by the server's clock; the first argument sets the time in tests, and is empty otherwise. A time
further ahead than possible was written before the clock was set back, and counts as past.
"""

from __future__ import annotations

_START = """
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] + time[2] / 1000000
end
local state, leases, waiting = KEYS[1], KEYS[2], KEYS[3]
local LONGEST = 3601
"""

# now, lease, process, most, seconds of a lease -> [go | full | closed | pause, seconds, why]
ENTER = (
    _START
    + """
local lease, process, most, life = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])

local function left(kind)
  local found = (tonumber(redis.call('HGET', state, kind)) or 0) - now
  return (found > 0 and found < LONGEST) and found or 0
end

-- At least a millisecond, so that who sleeps for it finds the time moved on.
local function halt(kind)
  local seconds = string.format('%.6f', math.max(left(kind), 0.001))
  return {kind, seconds, redis.call('HGET', state, kind .. '_why') or ''}
end

if left('closed') > 0 then return halt('closed') end
if left('pause') > 0 then return halt('pause') end

redis.call('ZREMRANGEBYSCORE', leases, '-inf', now)
redis.call('ZREMRANGEBYSCORE', leases, now + life + 1, '+inf')
redis.call('ZREMRANGEBYSCORE', waiting, '-inf', now - 1)
redis.call('ZREMRANGEBYSCORE', waiting, now + 1, '+inf')
local ahead = redis.call('ZRANK', waiting, process) or redis.call('ZCARD', waiting)
if most - redis.call('ZCARD', leases) <= ahead then
  redis.call('ZADD', waiting, now, process)
  redis.call('EXPIRE', waiting, 60)
  return {'full', '0', ''}
end

redis.call('ZREM', waiting, process)
redis.call('ZADD', leases, now + life, lease)
redis.call('EXPIRE', leases, 60)
return {'go', '0', ''}
"""
)

# now, lease, what it has shown (pause or closed, or nothing), seconds, why
LEAVE = (
    _START
    + """
local lease, kind, seconds, why = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]

redis.call('ZREM', leases, lease)
if kind == '' then return 0 end
local found = tonumber(redis.call('HGET', state, kind)) or 0
if now + seconds > found or found - now >= LONGEST then
  redis.call('HSET', state, kind, now + seconds, kind .. '_why', why)
end
redis.call('EXPIRE', state, 2 * LONGEST)
return 1
"""
)

# now, seconds of a lease, leases. A lease that has expired meanwhile is not renewed.
RENEW = (
    _START
    + """
for number = 3, #ARGV do
  redis.call('ZADD', leases, 'XX', now + ARGV[2], ARGV[number])
end
redis.call('EXPIRE', leases, 60)
return 1
"""
)
