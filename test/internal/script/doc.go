// Package script reads and runs texts that say what a server answers, byte for
// byte. A script tells its reader the HTTP interface by example, and the runner
// proves it on the built binary.
//
// A script is made of lines; the first characters of a line say what it is.
//
//	# a comment
//	with CURT_X=value          a setting of the server that this script talks to
//	== a title                 begins a case; its connection and what follows are its own
//	> GET /abc                 a request: the line without version, header lines,
//	> Accept: text/html        and after an empty ">" the body. Host and
//	>                          Content-Length are added unless they are there.
//	> {"a": 1}
//	>> "GET / HTTP/1.0\r\n\r\n"  instead: these bytes, as a Go string
//	! again 1m                 before a request: repeat it until the answer is as
//	                           wanted, for at most 2 s
//	! times 10                 before a request: send it 10 times, each answered so
//	! connect                  before a request: on a new connection
//	! pause 2ms                before a request: not earlier, for times that must differ
//	< 302                      what must come back: the status,
//	< Location: /x             a header that is there once with this value,
//	< ETag ~ ^"[0-9]+"$        a header that matches,
//	< Set-Cookie -             a header that is not there,
//	< body = "text\n"          the whole body, as a Go string
//	< body ~ <h1>              a body that matches
//	< body -                   no body
//	< json links.0.tags = []   a value of a JSON body, equal as JSON
//	< json links.# = 2         the length of an array
//	< json id ~ ^[0-9a-f-]+$   a string, or the text of a number, that matches
//	< json title -             a member that is not there
//	< problem gone             problem+json whose type ends so and whose status is right
//	< closed                   the server ends the connection afterwards
//
// ${name} is replaced everywhere: by what a named group (?<name>...) matched
// earlier in the case or in the script, by a value of the runner (host, base, key,
// admin, json), by ${a*100} = "a" a hundred times, or by ${now+90s} = that time in
// RFC 3339 with milliseconds.
package script
