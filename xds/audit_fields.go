package xds

// auditFields gives the names that the backend of an operation may add to its
// audit line. What is not here never gets into a line, whatever a backend
// sends.
func auditFields(op string) []string {
	switch op {
	case "rerunPipelineRun":
		return []string{"name", "dryRun", "idempotencyKeySha256", "created", "replayed"}
	case "cancelPipelineRun":
		return []string{"name", "dryRun", "result"}
	case "promoteEnvironment":
		return []string{"name", "dryRun", "env", "cluster", "idempotencyKeySha256", "mode", "created", "replayed", "prUrl"}
	case "rollbackEnvironment":
		return []string{"name", "dryRun", "env", "cluster", "idempotencyKeySha256", "target", "replaces", "created", "replayed", "prUrl"}
	case "validateCicd":
		return []string{"valid", "errors", "changes", "agent", "base"}
	default:
		return nil
	}
}
