// Package chaos holds the gateway to its promises while its parts fail: under a steady load of callers who may and who may
// not, each part of two edges and three replicas is killed, stopped and cut off. Redis runs in containers, as one node and as
// a Cluster. No call may be let through that is not due, none may hang, and what is left must recover by itself.
package chaos
