// Package devenv starts the real parts the gateway stands on - etcd, the Kubernetes API server, Redis, Envoy - and the gateway
// itself, for tests and for `glidepath-dev up`. Every part gets ports of its own, is ready by probe when its Start function
// returns, writes its logs to files under its Dir, and ends with the program that started it, at the latest.
//
// The context of a Start function bounds the start alone. Tests use the helpers of the package devtest instead, which stop
// what they start.
package devenv
