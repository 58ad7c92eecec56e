-- Gives up the lock KEYS[1] if the token ARGV[1] holds it.
if redis.pcall('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
