import { createHash } from 'node:crypto'
import { OpCode, writeAuthPacket, writeSetACLRequest } from '@zabra/protocol'
import { MemoryDisk } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { Ensemble } from '../ensemble/testing/ensemble.ts'
import { login } from '../testing/sasl-login.ts'
import { TestServer, type RawClient } from '../testing/test-server.ts'

const DATA = 'marker-of-data'
const PASSWORD = 'marker-of-a-password'
const SASL_PASSWORD = 'marker-of-sasl'
const TOKEN = 'marker-of-a-token'
const DIGEST = Buffer.from('marker-of-a-digest.').toString('base64')
const SUPER_DIGEST = Buffer.from('marker-of-super-dig').toString('base64')
const QUORUM_SECRET = 'marker-of-the-quorum-secret-of-members'

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Returns the secrets of which a text has one, as text, hexadecimal or base64. */
function found(text: string, secrets: readonly (string | Uint8Array)[]): (string | Uint8Array)[] {
  return secrets.filter((secret) => {
    const bytes = Buffer.from(typeof secret === 'string' ? utf8(secret) : secret)
    const forms = [bytes.toString('utf8'), bytes.toString('hex'), bytes.toString('base64').replace(/=+$/, '')]
    return forms.some((form) => text.toLowerCase().includes(form.toLowerCase()))
  })
}

/** Returns the secrets in a file that has them as hexadecimal. */
function hexadecimalIn(bytes: Uint8Array): Uint8Array[] {
  const all = new TextDecoder().decode(bytes).match(/[\da-f]{32,}/g) ?? []
  expect(all).not.toEqual([])
  return all.map((hex) => Buffer.from(hex, 'hex'))
}

const authenticate = (client: RawClient, text: string): void =>
  client.ask(-4, OpCode.auth, (w) => writeAuthPacket(w, { type: 0, scheme: 'digest', auth: utf8(text) }))

it('no line of a busy server has data, passwords, digests or tokens', async () => {
  const disk = new MemoryDisk()
  const sha256 = createHash('sha256').update(TOKEN).digest('hex')
  disk.putFile('/data/tokens', utf8(`deploy:view:${sha256}\n`))
  const server = await TestServer.start(
    {
      superDigest: `super:${SUPER_DIGEST}`,
      saslUsers: { ada: SASL_PASSWORD },
      adminTokensFile: '/data/tokens',
      auditEnabled: true,
      auditFormat: 'json',
      auditEvents: ['writes', 'auth', 'sessions', 'admin'],
      slowRequestMs: 1,
    },
    disk,
  )
  const client = await server.connect()
  authenticate(client, `bob:${PASSWORD}`)
  client.create(1, '/a', 0, DATA)
  client.set(2, '/a', DATA)
  client.create(3, '/a', 0, DATA)
  client.ask(4, OpCode.setACL, (w) =>
    writeSetACLRequest(w, {
      path: '/a',
      acl: [{ perms: 31, id: { scheme: 'digest', id: `eve:${DIGEST}` } }],
      version: -1,
    }),
  )
  await server.untilIdle()
  const unblock = server.blockDisk()
  client.set(5, '/', DATA)
  await server.advance(2000)
  unblock()
  await server.untilIdle()
  for (const password of [SASL_PASSWORD, PASSWORD]) await login(await server.connect(), 'ada', password)
  authenticate(await server.connect(), `super:${PASSWORD}`)
  for (const authorization of [
    `Bearer ${TOKEN}`,
    `Bearer ${TOKEN}-`,
    `Basic ${btoa(`ada:${SASL_PASSWORD}`)}`,
    `Basic ${btoa(`ada:${PASSWORD}`)}`,
  ])
    await server.http.request('/api/v1/drain', { method: 'DELETE', headers: { authorization } })
  // What is no request, and a session that is resumed with a wrong password.
  for (const bytes of [`GET /${DATA} HTTP/1.1\r\n\r\n`, `\0\0\0\u0030${DATA}${PASSWORD}${TOKEN}`])
    (await server.open()).send(utf8(bytes))
  await server.client({ resume: client.session!, password: utf8(PASSWORD.slice(0, 16)) })
  const resumed = await server.client({ resume: client.session! })
  await server.advance(30_000)
  const events = await server.http.request('/api/v1/events?follow=false')
  await server.restart().catch(() => {})
  await server.stop()

  const text = [...server.logLines.map((line) => JSON.stringify(line)), events.text].join('\n')
  expect(events.text).toMatch(
    /event: request.slow(.|\n)*event: admin.login-refused(.|\n)*event: client.refused/,
  )
  expect(resumed.frames).toHaveLength(1)
  expect(text).toMatch(/A request was slow(.|\n)*A session expired/)
  const secrets = hexadecimalIn(await disk.readFile('/data/session.secret'))
  expect(
    found(text, [
      DATA,
      PASSWORD,
      PASSWORD.slice(0, 16),
      SASL_PASSWORD,
      TOKEN,
      sha256,
      DIGEST,
      SUPER_DIGEST,
      client.session!.passwd!,
      ...secrets,
    ]),
  ).toEqual([])
})

it('no line of a member has the secret of members, or that of sessions', async () => {
  const ensemble = await Ensemble.start(3, { quorumSecret: QUORUM_SECRET })
  await ensemble.until('a shared secret', () =>
    ensemble.lines.some((line) => line.includes('All members share a secret')),
  )
  const client = await ensemble.client(1, { timeout: 60_000 })
  client.create(1, '/a', 0, DATA)
  await ensemble.member(3).crash()
  await ensemble.allServe()
  const folder = '/data'
  const { disk } = ensemble.member(1)
  const files = (await disk.list(folder)).filter((name) => name.includes('secret'))
  expect(files).not.toEqual([])
  const contents = await Promise.all(files.map((name) => disk.readFile(`${folder}/${name}`)))
  const secrets = contents.flatMap(hexadecimalIn)
  expect(
    found(ensemble.lines.join('\n'), [QUORUM_SECRET, DATA, client.session!.passwd!, ...secrets]),
  ).toEqual([])
})
