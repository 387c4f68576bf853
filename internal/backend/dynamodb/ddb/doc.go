// Package ddb is the client of DynamoDB: requests with a bound of time, retries with backoff and
// jitter by the SDK, what an error says of a write, and the units that a request cost.
//
// Read client.go for what a call promises, retry.go for what is sent again, sent.go for what was never
// sent, errors.go for what errors mean, requests.go for the requests, value.go for attribute values, address.go for the setting.
package ddb
