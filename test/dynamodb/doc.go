// Package dynamodb runs servers of the built binary over DynamoDB Local, with their accounts in
// PostgreSQL. The folder also has what scripts/maven and scripts/services start DynamoDB Local from.
package dynamodb
