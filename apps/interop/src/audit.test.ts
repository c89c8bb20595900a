import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, it } from 'vitest'
import { describeWith, python } from './harness/requirements.ts'
import { run, scratch, type Server } from './harness/servers.ts'
import { onBoth } from './harness/transcript.ts'

const script = resolve(import.meta.dirname, '../python/audit.py')
/** Where Apache ZooKeeper writes its log lines to; its Debian package has no binding of its logger. */
const loggerJars = ['slf4j-api', 'slf4j-log4j12', 'log4j-1.2'].map((name) => `/usr/share/java/${name}.jar`)

/** Returns the audit lines of both servers in one form: sessions by their order, and identities in the order of the alphabet. */
function comparable(text: string): string[] {
  const sessions: string[] = []
  return text
    .split('\n')
    .filter((line) => line.includes('operation=') && !line.includes('operation=login'))
    .map((line) =>
      line
        .replace(/^\S+ \S+ /, '')
        .replace(/session=(0x\w+)/, (_, id: string) => {
          if (!sessions.includes(id)) sessions.push(id)
          return `session=${sessions.indexOf(id)}`
        })
        .replace(/user=([^\t]+)/, (_, users: string) => `user=${users.split(',').toSorted().join()}`),
    )
}

describeWith(['apache', 'kazoo'], 'the audit log', () => {
  it('has the lines of Apache ZooKeeper for the same requests', async () => {
    const folder = scratch('audit')
    const log4j = join(folder, 'log4j.properties')
    const lines = [
      'log4j.rootLogger=OFF',
      'log4j.logger.org.apache.zookeeper.audit.Slf4jAuditLogger=INFO, FILE',
      'log4j.appender.FILE=org.apache.log4j.FileAppender',
      `log4j.appender.FILE.File=${folder}/apache-3.8.log`,
      'log4j.appender.FILE.layout=org.apache.log4j.PatternLayout',
      'log4j.appender.FILE.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n',
    ]
    writeFileSync(log4j, lines.join('\n'))
    const flags = [
      `-Xbootclasspath/a:${loggerJars.join(':')}`,
      `-Dlog4j.configuration=file:${log4j}`,
      '-Dzookeeper.audit.enable=true',
    ]
    const scenario = async (server: Server): Promise<string> => {
      const { code, stderr } = await run(python, [script, server.address], { timeoutMs: 90_000 })
      expect({ code, stderr }).toMatchObject({ code: 0 })
      await server.stop()
      return readFileSync(join(folder, `${server.kind}.log`), 'utf8')
    }
    const own = (kind: string): Record<string, string> =>
      kind === 'zabra' ? { 'audit.file': join(folder, 'zabra.log') } : {}
    const { apache, zabra } = await onBoth(scenario, {}, flags, own)
    const [expected, got] = [apache, zabra].map((log) => comparable(log.join('\n')))
    expect(got).toEqual(expected)
    expect(expected!.length).toBeGreaterThan(20)
  })
})
