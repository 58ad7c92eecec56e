// Package upstream owns how the servers outside the gateway are asked, whatever
// they are asked for: so many requests at once and no more, none that hangs, each
// of them counted with what became of it, and how long to wait before one is made
// again. How they are reached belongs to the package outbound, and what their
// answers mean to the packages that ask.
package upstream
