package tables

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"curt/internal/backend/dynamodb/ddb"
)

// object is one of JSON.
type object = map[string]any

// tableParameter names the parameter of the template.
const tableParameter = "Table"

// Template returns a template of CloudFormation for the tables that Migrate makes, and for policies of
// the roles of servers.
func Template() ([]byte, error) {
	resources := object{}
	for i, t := range All(ddb.Address{Table: "${" + tableParameter + "}"}) {
		resources[[]string{"Links", "State"}[i]] = object{
			"Type": "AWS::DynamoDB::Table", "DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain",
			"Properties": t.properties(),
		}
	}
	for _, r := range Roles() {
		resources[r.Name] = object{
			"Type": "AWS::IAM::ManagedPolicy",
			"Properties": object{
				"Description":    r.About,
				"PolicyDocument": object{"Version": "2012-10-17", "Statement": r.statements()},
			},
		}
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	err := e.Encode(object{
		"AWSTemplateFormatVersion": "2010-09-09",
		"Description":              "The tables of curt, as curt migrate creates them, and policies for its servers.",
		"Parameters": object{tableParameter: object{
			"Type": "String", "Default": "curt", "Description": "CURT_LINKS=dynamodb://TABLE; the table of state is TABLE-state.",
		}},
		"Resources": resources,
	})
	if err != nil {
		return nil, fmt.Errorf("write the template: %w", err)
	}
	return text.Bytes(), nil
}

func (t *Table) properties() object {
	var definitions []object
	for _, c := range t.columns() {
		definitions = append(definitions, object{"AttributeName": c.Name, "AttributeType": c.Type})
	}
	p := object{
		"TableName": object{"Fn::Sub": t.Name}, "BillingMode": "PAY_PER_REQUEST", "DeletionProtectionEnabled": true,
		"PointInTimeRecoverySpecification": object{"PointInTimeRecoveryEnabled": true},
		"AttributeDefinitions":             definitions, "KeySchema": schemaObject(t.Hash, t.Sort),
	}
	if t.TTL != "" {
		p["TimeToLiveSpecification"] = object{"AttributeName": t.TTL, "Enabled": true}
	}
	var indexes []object
	for i := range t.Indexes {
		x := &t.Indexes[i]
		indexes = append(indexes, object{
			"IndexName": x.Name, "KeySchema": schemaObject(x.Hash, x.Sort), "Projection": object{"ProjectionType": x.projection()},
		})
	}
	if len(indexes) > 0 {
		p["GlobalSecondaryIndexes"] = indexes
	}
	return p
}

func schemaObject(hash, sort Column) (all []object) {
	for _, e := range schema(hash, sort) {
		all = append(all, object{"AttributeName": *e.AttributeName, "KeyType": e.KeyType})
	}
	return all
}

// Role is who may do what with the tables.
type Role struct {
	Name, About string
	Links       []string // actions on the table of links
	Indexes     bool     // may query them
	State       []string // actions on the table of state
}

// Roles returns the policies, with no more than each needs. Requests of a transaction need the actions
// of its writes.
func Roles() []Role {
	write := []string{"DescribeTable", "GetItem", "BatchGetItem", "PutItem", "UpdateItem", "DeleteItem"} // of reservations
	state := []string{"DescribeTable", "GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"}
	tables := []string{
		"CreateTable", "DescribeTable", "UpdateTable", "TagResource", "DescribeContinuousBackups", "UpdateContinuousBackups", "DescribeTimeToLive", "UpdateTimeToLive",
		"GetItem", "PutItem",
	}
	return []Role{
		{
			Name: "RedirectPolicy", About: "curt servers with the role redirect: look-ups, clicks of links with a bound, the change log.",
			Links: []string{"DescribeTable", "GetItem", "UpdateItem"}, State: slices.DeleteFunc(slices.Clone(state), func(a string) bool { return a == "BatchGetItem" }),
		},
		{Name: "ServerPolicy", About: "curt servers with the roles api and worker.", Links: write, Indexes: true, State: state},
		{
			Name: "MigratePolicy", About: "curt migrate, also with --restored.",
			Links: append(slices.Clip(tables), "Scan"), State: append(slices.Clip(tables), "UpdateItem"),
		},
	}
}

func (r *Role) statements() (all []object) {
	arn := func(suffix string) object {
		return object{"Fn::Sub": "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/${" + tableParameter + "}" + suffix}
	}
	allow := func(actions []string, resources ...object) {
		named := make([]string, len(actions))
		for i, a := range actions {
			named[i] = "dynamodb:" + a
		}
		all = append(all, object{"Effect": "Allow", "Action": named, "Resource": resources})
	}
	allow(r.Links, arn(""))
	if r.Indexes {
		allow([]string{"Query"}, arn("/index/*"))
	}
	allow(r.State, arn("-state"))
	return all
}
