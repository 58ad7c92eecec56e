-- Appends entries to the journal KEYS[1], each once, in the order of their
-- versions, and takes away what is too much.
--
-- ARGV: for how long an entry is kept, in ms; how many are kept, and how many
-- bytes; then version and sealed body of each entry in turn. An entry has the
-- fields t, when it was appended by this server's clock, n, how many bytes were
-- appended up to it, and v, what was sealed.
--
-- Whoever sees a change first appends it: a version that is not above the last
-- one was appended before, or comes too late to stand in its place. Then the
-- gap shows by what the entries say, and not by what is here.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local life, count, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local function field(entry, name)
  for i = 1, #entry[2], 2 do
    if entry[2][i] == name then return tonumber(entry[2][i + 1]) end
  end
end

-- pcall, because a key may hold anything; then it is nobody's.
local last = redis.pcall('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
if last.err then
  if not string.find(last.err, 'WRONGTYPE', 1, true) then return last end
  redis.call('DEL', KEYS[1])
  last = {}
end
local total = last[1] and field(last[1], 'n') or 0
if not (total >= 0 and total < 2 ^ 52) then total = 0 end

local added = 0
for i = 4, #ARGV, 2 do
  local sum = total + #ARGV[i + 1]
  local reply = redis.pcall('XADD', KEYS[1], ARGV[i], 't', now, 'n', sum, 'v', ARGV[i + 1])
  if type(reply) == 'table' and reply.err then
    if not string.find(reply.err, 'equal or smaller', 1, true) then return reply end
  else
    total, added = sum, added + 1
  end
end
if added == 0 then return 0 end

redis.call('XTRIM', KEYS[1], 'MAXLEN', count)
-- A call appends fewer entries than it takes away at most.
local first
for _, entry in ipairs(redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 128)) do
  local t, n = field(entry, 't'), field(entry, 'n')
  first = entry[1]
  if t and n and t <= now and now - t < life and n <= total and total - n < most then break end
end
redis.call('XTRIM', KEYS[1], 'MINID', first)
redis.call('PEXPIRE', KEYS[1], life)
return added
