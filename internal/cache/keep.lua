-- Keeps the lock KEYS[1] for another ARGV[2] ms if the token ARGV[1] holds it.
if redis.pcall('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
