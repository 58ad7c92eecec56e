// Package outbound owns how the processes reach servers outside the gateway:
// whom they trust, what they show, through which proxy they go, and what bounds
// a connection. What is asked of a server belongs to the packages that ask.
package outbound
