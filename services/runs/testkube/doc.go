// Package testkube reads what Testkube knows of an app's tests: its executions
// of test workflows that Glidepath tagged with the app, and the JUnit report that
// one of them left.
//
// Testkube has no rights of its own to ask about: every execution of every app
// is there for whoever reaches it. So what is handed out is held against the
// app's tag here, execution by execution, whatever a filter was asked to do.
//
// Its parts: client.go makes the requests; execution.go says what is read of an
// execution; list.go and report.go have one operation each.
package testkube
