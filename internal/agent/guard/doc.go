// Package guard serves a validating webhook of the target. It tells who changes an object of an Application
// that the agent will revert the change, or refuses the request: [package forecast] has the decision.
//
// Every replica of the agent serves. A request that the guard cannot judge passes: the agent reverts what
// slips through.
//
// Valid: a request is answered from what this replica knows, without a request to an API server, except
// for a change of the scale. Invalid: a request that fails, or waits, because the guard has a problem.
//
// [package forecast]: github.com/krake-observer/krake-observer/internal/forecast
package guard
