package explain

// Limit lowers what a log may cost, so that tests need not make long ones.
func (c *Catalogue) Limit(log, tested int64) { c.maxLog, c.maxTested = log, tested }
