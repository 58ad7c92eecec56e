package telemetry

// AppendSpan is appendSpan.
var AppendSpan = appendSpan
