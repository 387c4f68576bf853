// Answers each request with what Node's parser made of it, as JSON in base64, and a
// request that it refuses with the name of the error.
'use strict'
const http = require('node:http')
const server = http.createServer({ keepAliveTimeout: 0, maxHeaderSize: 16 << 10, requireHostHeader: true }, (request, response) => {
  request.resume()
  const said = JSON.stringify({ method: request.method, url: request.url, host: request.headers.host ?? '', version: request.httpVersion })
  response.writeHead(200, { 'X-Read': Buffer.from(said).toString('base64'), 'Content-Length': 0 })
  response.end()
})
server.on('clientError', (error, socket) => {
  if (socket.writable) socket.end(`HTTP/1.1 400 Bad Request\r\nX-Error: ${error.code}\r\nConnection: close\r\n\r\n`)
})
server.on('checkContinue', (request, response) => server.emit('request', request, response))
server.on('upgrade', (request, socket) => socket.end('HTTP/1.1 400 Bad Request\r\nX-Error: upgrade\r\nConnection: close\r\n\r\n'))
server.on('connect', (request, socket) => socket.end('HTTP/1.1 400 Bad Request\r\nX-Error: connect\r\nConnection: close\r\n\r\n'))
server.listen(0, '127.0.0.1', () => console.log(`127.0.0.1:${server.address().port}`))
process.stdin.resume().on('end', () => process.exit(0)) // whoever started us has gone
