// Package up keeps one gateway running in the background: Up starts a supervisor process that outlives it, Down ends exactly
// what that started, Status says what runs. All they keep is in one folder, .run of the repository by default. Every start begins with an empty
// API server, also after a crash: the sample fleet is applied again, so nothing is worth keeping.
package up
