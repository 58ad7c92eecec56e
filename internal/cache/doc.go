// Package cache owns values that are slow to read and may be a little old. All
// replicas of a service share them through Redis: one of them reads the source
// and the others wait for what it got. Each replica also keeps what it used
// last in its own memory.
//
// Redis is a help and never needed. While it is away each replica reads for
// itself, without waiting for it, and it is used again once it is back.
//
// A value is as old as its reading, from when that began, and each caller says
// how old it may be. One of which the age does not matter, and whose reading takes
// long, is kept for a time from when it was read instead.
//
// Nothing in Redis is trusted. Values are compressed and then sealed with a key
// of the service, bound to their key and age; what does not open or decode is
// as if it were not there. Whoever can write to Redis can take values and locks
// away, or keep a lock, and so make calls slow, but cannot make up an answer.
//
// A Journal keeps what happened lately rather than values, sealed as well. What is
// taken away from it leaves a gap, and a gap is seen.
//
// Once is the exception: what was used once can be told by Redis alone, and it
// is believed in that.
//
// A Redis user needs the keys glidepath:1:<service>:* and the commands evalsha,
// eval, time, getrange, strlen, get, set, del, pttl and pexpire; in a Cluster,
// cluster as well; for a Journal xadd, xrange, xrevrange and xtrim.
//
// This is the only package that speaks to Redis.
package cache
