// Package seal owns how a service closes bytes that leave its hands and come
// back: values kept in Redis, tokens that callers hold for a while. What was
// changed, made by somebody else, or moved to another place does not open.
package seal
