import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DiskError, NetworkError, silentLogger, TlsOptionError, type Logger } from '@zabra/runtime'
import { createAuthority, issueCertificate } from '@zabra/runtime/node/certificate-authority'
import { checkFiles } from '@zabra/server'
import { SettingFileError, type ServerSettings } from '@zabra/server/settings'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { run, type RunningServer, type Host } from './run.ts'

const authority = createAuthority({ name: 'test', days: 1 })
const issued = issueCertificate(authority, { name: 'server', days: 1, hosts: ['localhost'] })

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'zabra-server-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

/** A promise with its resolver beside it, which Node 20 does not bring. */
function deferred<T>() {
  let resolve: (value: T) => void = () => undefined
  const promise = new Promise<T>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}

/**
 * A program in a world of its own: what it prints, the server it starts, and the signals it gets. The server has started once it has read
 * its data.
 */
function stage(argv: string[], overrides: Partial<Host> = {}, dataRead = Promise.resolve()) {
  const printed = { out: '', err: '', log: [] as string[] }
  const started = deferred<ServerSettings>()
  const failed = deferred<unknown>()
  const starting = deferred<void>()
  const state = {
    starting: starting.promise,
    now: 0,
    closed: 0,
    exits: [] as number[],
    signal: ((): void => undefined) as (signal: string) => void,
    hangUp: (): void => undefined,
    toggle: (): void => undefined,
    reloads: 0,
    closing: Promise.resolve(),
  }
  const server: Omit<RunningServer, 'logger' | 'failed'> = {
    listeners: [{ key: 'clientPort', address: { host: '0.0.0.0', port: 2181 }, secure: false }],
    stats: () => ({ lastZxid: 0x1f, nodes: 7, sessions: 2 }),
    reload: async () => void state.reloads++,
    close: () => (state.closed++, state.closing.then(() => failed.resolve(undefined))),
  }
  const note = (_: object, sentence: string): void => void printed.log.push(sentence)
  const logger: Logger = { ...silentLogger, info: note, warn: note, error: note }
  const world: Host = {
    argv,
    environment: {},
    version: '1.2.3',
    isTerminal: true,
    out: (text) => void (printed.out += text),
    err: (text) => void (printed.err += text),
    logger: async () => logger,
    async start(settings, logger) {
      starting.resolve()
      await dataRead
      return {
        ...server,
        logger,
        // Started when the program waits for its end.
        get failed() {
          started.resolve(settings)
          return failed.promise
        },
      }
    },
    checkFiles,
    now: () => state.now,
    onStop: (stop) => ((state.signal = stop), () => undefined),
    onReload: (reload) => ((state.hangUp = reload), () => undefined),
    onToggleDebug: (toggle) => ((state.toggle = toggle), () => undefined),
    exit: (code) => void state.exits.push(code),
    ...overrides,
  }
  return { exit: run(world), printed, started: started.promise, failed, state }
}

function config(text: string): string {
  const file = join(folder, 'zoo.cfg')
  writeFileSync(file, text)
  return file
}

describe('the command line', () => {
  test('--version prints the version and --help the usage', async () => {
    const version = stage(['--version'])
    expect(await version.exit).toBe(0)
    expect(version.printed.out).toBe('1.2.3\n')
    const help = stage(['--help'])
    expect(await help.exit).toBe(0)
    expect(help.printed.out).toContain('zabra-server --check-config zoo.cfg')
  })

  test('an unknown option exits with 2 and is named', async () => {
    const { exit, printed } = stage(['--prot', '5'])
    expect(await exit).toBe(2)
    expect(printed.err).toContain("unknown option '--prot'")
    expect(printed.err).toContain('--port')
  })

  test('flags override the file', async () => {
    const { started, state, exit } = stage([
      config(`dataDir=${folder}/a\nclientPort=1`),
      '--port',
      '7',
      '--data',
      join(folder, 'b'),
    ])
    expect(await started).toMatchObject({ clientPort: 7, dataDir: join(folder, 'b') })
    state.signal('SIGTERM')
    expect(await exit).toBe(0)
  })

  test('ZOOCFGDIR names the file when the command line does not', async () => {
    config(`dataDir=${folder}\nclientPort=99`)
    const { started, state } = stage([], { environment: { ZOOCFGDIR: folder } })
    expect((await started).clientPort).toBe(99)
    state.signal('SIGTERM')
  })

  test('an unknown log level exits with 2 and a list of the known ones', async () => {
    const { exit, printed } = stage([], { environment: { LOG_LEVEL: 'loud' } })
    expect(await exit).toBe(2)
    expect(printed.err).toBe(
      'zabra-server: LOG_LEVEL: expected one of error, warn, info, debug, got "loud".\n',
    )
  })

  test('a missing file exits with 2 and one line', async () => {
    const { exit, printed } = stage([join(folder, 'none.cfg')])
    expect(await exit).toBe(2)
    expect(printed.err).toMatch(
      /^zabra-server: cannot read .*none\.cfg.*Check the path and its permissions\.\n$/,
    )
  })
})

describe('--check-config', () => {
  test('prints every finding and starts nothing', async () => {
    const { exit, printed } = stage([
      '--check-config',
      config('dataDir=/data\ntickTime=soon\nclientPrt=1\njmx.log4j=5'),
    ])
    expect(await exit).toBe(2)
    expect(printed.out).toMatch(/error: .*zoo\.cfg:2: tickTime: expected a time/)
    expect(printed.out).toMatch(/error: .*zoo\.cfg:3: clientPrt: .*Did you mean clientPort\?/)
    expect(printed.out).toMatch(/warning: .*zoo\.cfg:4: jmx\.log4j: has no effect here/)
    expect(printed.out).toContain('2 errors')
  })

  test('prints the settings with their origins, but no secret', async () => {
    const secret = 'super:c2VjcmV0c2VjcmV0'
    const { exit, printed } = stage([
      '--check-config',
      config(`dataDir=/data\ntickTime=2 s\nDigestAuthenticationProvider.superDigest=${secret}`),
    ])
    expect(await exit).toBe(0)
    expect(printed.out).toMatch(/tickTime = 2 s {3}\(.*zoo\.cfg:2\)/)
    expect(printed.out).toContain('superDigest = (set, not shown)')
    expect(printed.out).not.toContain(secret)
  })
})

describe('--check-config with files', () => {
  const check = async (...lines: string[]) => {
    const { exit, printed } = stage(['--check-config', config(['dataDir=/data', ...lines].join('\n'))])
    return { code: await exit, out: printed.out }
  }
  const file = (name: string, text: string): string => {
    const path = join(folder, name)
    writeFileSync(path, text)
    return path
  }

  test.each([
    [
      'a key store that is absent',
      () => ['secureClientPort=2281', 'ssl.clientAuth=none', 'ssl.keyStore.location=/none.pem'],
      /error: .*zoo\.cfg:4: ssl\.keyStore\.location: Cannot read \/none\.pem \(ENOENT\)/,
    ],
    [
      'a trust store without certificates, beside a good key store',
      () => [
        'secureClientPort=2281',
        `ssl.keyStore.location=${file('key.pem', `${issued.key}${issued.certificate}`)}`,
        `ssl.trustStore.location=${file('trust.pem', 'nothing')}`,
      ],
      /error: .*zoo\.cfg:4: ssl\.trustStore\.location: .*trust\.pem/,
    ],
    [
      'a password file that is absent',
      () => [
        'secureClientPort=2281',
        'ssl.clientAuth=none',
        `ssl.keyStore.location=${file('key.p12', 'x')}`,
        'ssl.keyStore.passwordPath=/none.password',
      ],
      /error: .*zoo\.cfg:5: ssl\.keyStore\.passwordPath: Cannot read \/none\.password/,
    ],
    [
      'a tokens file with a bad line',
      () => [`admin.tokensFile=${file('tokens', '# ours\nmonitor:watcher:00\n')}`],
      /error: .*zoo\.cfg:2: admin\.tokensFile: .*tokens, line 2: expected roles among/,
    ],
    [
      'a tokens file that is absent',
      () => ['admin.tokensFile=/none'],
      /error: .*zoo\.cfg:2: admin\.tokensFile: Cannot read \/none: ENOENT\. Check the path and its permissions/,
    ],
    [
      'a short secret of sessions',
      () => [`sessionSecretFile=${file('secret', 'short')}`],
      /error: .*zoo\.cfg:2: sessionSecretFile: Expected a secret of at least 16 bytes.*got 5/,
    ],
    [
      'an unusable key store of the HTTP port',
      () => ['admin.forceHttps=true', `admin.ssl.keyStore.location=${file('admin.pem', 'x')}`],
      /error: .*zoo\.cfg:3: admin\.ssl\.keyStore\.location: .*admin\.pem/,
    ],
    [
      'an audit file in a folder that is absent',
      () => ['audit.enable=true', 'audit.file=/none/audit.log'],
      /error: .*zoo\.cfg:3: audit\.file: Cannot list \/none: ENOENT\. Check the path and its permissions/,
    ],
    [
      'an audit file that is a folder',
      () => ['audit.enable=true', `audit.file=${folder}`],
      /error: .*zoo\.cfg:3: audit\.file: Cannot open .*: EISDIR/,
    ],
    [
      'a target of backups that is none',
      () => ['backup.target=backups'],
      /error: .*zoo\.cfg:2: backup\.target: Expected an absolute folder, .*got backups/,
    ],
    [
      'a key of backups that is too short',
      () => ['backup.target=/backups', `backup.encryption.keyFile=${file('key', 'abc')}`],
      /error: .*zoo\.cfg:3: backup\.encryption\.keyFile: Expected 64 hexadecimal digits/,
    ],
    [
      'credentials for S3 that are absent',
      () => ['backup.target=s3://bucket', 'backup.s3.credentialsFile=/none'],
      /error: .*zoo\.cfg:3: backup\.s3\.credentialsFile: Cannot read \/none: ENOENT/,
    ],
  ])('finds %s', async (_, lines, message) => {
    const { code, out } = await check(...lines())
    expect(out).toMatch(message)
    expect(out).toContain('1 error: a server would not start.')
    expect(code).toBe(2)
  })

  test('finds nothing wrong with files that a server can use', async () => {
    const hash = 'a'.repeat(64)
    const lines = [
      'secureClientPort=2281',
      `ssl.keyStore.location=${file('key.pem', `${issued.key}${issued.certificate}`)}`,
      `ssl.trustStore.location=${file('trust.pem', authority.certificate)}`,
      `admin.tokensFile=${file('tokens', `monitor:view:${hash}\n`)}`,
      `sessionSecretFile=${file('secret', 'x'.repeat(32))}`,
      'backup.target=/backups,s3://bucket/orders',
      `backup.encryption.keyFile=${file('backup.key', '0123456789abcdef'.repeat(4))}`,
      `backup.s3.credentialsFile=${file('s3', 'aws_access_key_id = a\naws_secret_access_key = b\n')}`,
      'audit.enable=true',
    ]
    for (const audit of [join(folder, 'new.log'), file('old.log', 'a line\n')]) {
      const { code, out } = await check(...lines, `audit.file=${audit}`)
      expect(out).toContain('The configuration is fine.')
      expect(code).toBe(0)
    }
    expect(readdirSync(folder)).not.toContain('new.log')
    expect(readFileSync(join(folder, 'old.log'), 'utf8')).toBe('a line\n')
  })
})

describe('a running server', () => {
  test('announces its ports, its data folder and a command to try', async () => {
    const { started, printed, state, exit } = stage(['--data', folder])
    await started
    state.signal('SIGINT')
    expect(await exit).toBe(0)
    expect(printed.out).toContain('port 2181, all interfaces')
    expect(printed.out).toContain(folder)
    expect(printed.out).toContain('echo srvr | nc 127.0.0.1 2181')
  })

  test('closes on the first signal and ignores an echo of it', async () => {
    const { started, state, exit } = stage(['--data', folder])
    await started
    state.signal('SIGINT')
    state.now = 50
    state.signal('SIGINT')
    expect(await exit).toBe(0)
    expect(state.closed).toBe(1)
    expect(state.exits).toEqual([])
  })

  test('logs more on SIGUSR2, and as before on the next one', async () => {
    const levels: (string | undefined)[] = []
    const logger: Logger = { ...silentLogger, level: 'warn' }
    const { state, started } = stage(['--data', folder], { logger: async () => logger })
    await started
    for (let i = 0; i < 2; i++) {
      state.toggle()
      levels.push(logger.level)
    }
    expect(levels).toEqual(['debug', 'warn'])
  })

  test('refuses a LOG_FORMAT that it does not know', async () => {
    const { exit, printed } = stage(['--data', folder], { environment: { LOG_FORMAT: 'xml' } })
    expect(await exit).toBe(2)
    expect(printed.err).toContain('LOG_FORMAT: log.format: expected one of json, text, apache, got "xml"')
  })

  test('reloads its certificates on SIGHUP and keeps running', async () => {
    const { started, state, printed, exit } = stage(['--data', folder])
    await started
    state.hangUp()
    expect(state).toMatchObject({ reloads: 1, closed: 0 })
    expect(printed.log).toContain('Reloading certificates, tokens and the audit file on SIGHUP')
    state.signal('SIGTERM')
    expect(await exit).toBe(0)
  })

  test('takes SIGHUP and SIGUSR2 also while it reads its data: neither ends the process, as both do without a listener', async () => {
    const reading = deferred<void>()
    const logger: Logger = { ...silentLogger, level: 'info' }
    const { started, state, exit } = stage(
      ['--data', folder],
      { logger: async () => logger },
      reading.promise,
    )
    await state.starting
    state.hangUp()
    state.toggle()
    expect(logger.level).toBe('debug')
    expect(state.reloads).toBe(0)
    reading.resolve()
    await started
    expect(state.reloads).toBe(1)
    state.toggle()
    expect(logger.level).toBe('info')
    state.signal('SIGTERM')
    expect(await exit).toBe(0)
  })

  test('stops at once on SIGTERM while it reads its data', async () => {
    let reason: unknown
    const { state, exit, printed } = stage(['--data', folder], {
      start: (_settings, _logger, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject((reason = signal.reason) as Error))
          state.signal('SIGTERM')
        }),
    })
    expect(await exit).toBe(0)
    expect(reason).toBeInstanceOf(Error)
    expect([printed.err, printed.log]).toEqual([
      '',
      ['Stopped before the data were read; they are as they were'],
    ])
  })

  test('exits at once on a second signal', async () => {
    const { started, state } = stage(['--data', folder])
    state.closing = new Promise(() => undefined)
    await started
    state.signal('SIGTERM')
    state.now = 5000
    state.signal('SIGTERM')
    expect(state.exits).toEqual([1])
  })

  test('that fails prints the reason in one line and exits with a code other than 0', async () => {
    const { started, failed, exit, printed } = stage(['--data', folder])
    await started
    failed.resolve(Object.assign(new Error('Cannot sync\nthe log'), { code: 'ENOSPC' }))
    expect(await exit).toBe(15)
    expect(printed.err).toBe(
      'zabra-server stopped: Cannot sync the log. Free some space on the disk and start again.\n',
    )
  })

  test('that fails while it stops says so, and not that everything is on disk', async () => {
    const { started, failed, exit, printed, state } = stage(['--data', folder])
    state.closing = failed.promise.then(() => undefined)
    await started
    state.signal('SIGTERM')
    failed.resolve(Object.assign(new Error('Cannot sync the log'), { code: 'ENOSPC' }))
    expect(await exit).toBe(15)
    expect(printed.err).toContain('zabra-server stopped: Cannot sync the log')
    expect(printed.log.join()).not.toContain('everything is on disk')
  })

  test('with an unusable certificate exits with 2 and a line that names the file', async () => {
    const error = Object.assign(new Error('/tls/server.jks is a JKS file. Convert it'), {
      name: 'CertificateError',
    })
    const { exit, printed } = stage([], { start: () => Promise.reject(error) })
    expect(await exit).toBe(2)
    expect(printed.err).toBe('zabra-server cannot start: /tls/server.jks is a JKS file. Convert it\n')
  })

  test.each([
    ['ENOENT', 2],
    ['ENOSPC', 15],
  ])(
    'with an audit file that is refused with %s exits with %i and names the setting',
    async (code, exitCode) => {
      const cause = new DiskError(`Cannot open /none: ${code}`, code, '/none')
      const start = () => Promise.reject(new SettingFileError('audit.file', cause))
      const { exit, printed } = stage([], { start })
      expect(await exit).toBe(exitCode)
      expect(printed.err).toBe(
        `zabra-server cannot start: audit.file: Cannot open /none: ${code}. Check the path and its permissions.\n`,
      )
    },
  )

  test('with a target of backups that cannot be used exits with 2', async () => {
    const error = Object.assign(new Error('Expected an absolute folder, got x.'), { name: 'BackupError' })
    const { exit } = stage([], { start: () => Promise.reject(error) })
    expect(await exit).toBe(2)
  })

  test('with an unknown cipher suite exits with 2 and names the expected ones', async () => {
    const start = () => Promise.reject(new TlsOptionError('Expected cipher suites, got "X". TLS_A is one.'))
    const { exit, printed } = stage([], { start })
    expect(await exit).toBe(2)
    expect(printed.err).toBe('zabra-server cannot start: Expected cipher suites, got "X". TLS_A is one.\n')
  })

  test('whose HTTP port is used by another program exits with 4 and names the setting', async () => {
    const cause = new NetworkError('Cannot listen on 127.0.0.1:8081 (EADDRINUSE)', 'EADDRINUSE')
    const error = Object.assign(new Error(`admin.serverPort: ${cause.message}`, { cause }), {
      name: 'HttpPortError',
    })
    const { exit, printed } = stage([], { start: () => Promise.reject(error) })
    expect(await exit).toBe(4)
    expect(printed.err).toBe(
      'zabra-server cannot start: admin.serverPort: Cannot listen on 127.0.0.1:8081 (EADDRINUSE). Choose another port in that setting.\n',
    )
  })

  test.each([
    ['EADDRINUSE', 1, 'choose another one with clientPort or --port'],
    ['EACCES', 3, 'choose another folder with dataDir or --data'],
    ['ELOCKED', 3, 'Another server uses this folder'],
  ])('that cannot start for %s exits with %i and advice', async (code, exitCode, advice) => {
    const error = Object.assign(new Error('It failed'), { code })
    const { exit, printed } = stage([], { start: () => Promise.reject(error) })
    expect(await exit).toBe(exitCode)
    expect(printed.err).toContain(advice)
    expect(printed.err.trim().split('\n')).toHaveLength(1)
  })
})
