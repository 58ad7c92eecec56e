// Package archive holds the reads of archived runs to their promise while everything around them fails: whatever happens to the
// archive, to the tests' own server, to Redis and to the replicas, every answer is whole and was the truth at some moment within
// its age, and all else is a refusal that says whose fault it is.
package archive
