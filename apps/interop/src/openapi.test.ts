import { createHash, randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { freePort } from './harness/ports.ts'
import { describeWith, isLong, schemathesis } from './harness/requirements.ts'
import { run, scratch, Server } from './harness/servers.ts'

const CHECKS =
  'not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance'
/** The same requests in each run; others with another seed, in `ZABRA_SEED`. */
const SEED = ['--seed', process.env['ZABRA_SEED'] ?? '324942706722944605051414738082694364963']
/** Has the answers end that are streams otherwise. */
const ENDING_STREAMS = `
[[operations]]
include-name = "GET /api/v1/events"
parameters = { "query.follow" = false }
`

describeWith(['schemathesis'], 'requests that are derived from the OpenAPI document', () => {
  it.each(['no role', 'every role'])(
    'get answers that the document describes, and no server error, with %s',
    async (roles) => {
      const adminPort = await freePort()
      const token = randomBytes(24).toString('hex')
      const tokensFile = join(scratch('tokens'), 'tokens')
      const hash = createHash('sha256').update(token).digest('hex')
      writeFileSync(tokensFile, `tester:view,operate,backup,admin:${hash}\n`, { mode: 0o600 })
      const server = await Server.start({
        kind: 'zabra',
        config: {
          'admin.enableServer': 'true',
          'admin.serverPort': adminPort,
          'admin.tokensFile': tokensFile,
          'admin.rateLimiterIntervalInMS': 0,
        },
      })
      const url = `http://127.0.0.1:${adminPort}`
      const login = roles === 'no role' ? [] : ['--header', `Authorization: Bearer ${token}`]
      const argv = [
        `${url}/api/v1/openapi.json`,
        ...login,
        '--checks',
        CHECKS,
        // Without a role, nearly all requests get the same answer before their parameters are read: a few random ones are enough.
        ...(roles === 'no role'
          ? ['--phases', 'fuzzing', '--max-examples', '5']
          : ['--max-examples', isLong ? '20' : '10']),
        ...SEED,
      ]
      const cwd = scratch('requests')
      writeFileSync(join(cwd, 'schemathesis.toml'), ENDING_STREAMS)
      const { code, output } = await run(schemathesis, ['run', ...argv], { timeoutMs: 600_000, cwd })
      expect(code, output).toBe(0)
      expect((await fetch(`${url}/livez`)).status).toBe(200)
      await server.stop()
    },
    630_000,
  )
})
