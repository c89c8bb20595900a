import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { setupStage, stage } from './testing/cli-fixture.ts'

setupStage()

const complete = async (...words: string[]): Promise<string[]> =>
  (await stage.run(['complete', '--', ...words])).out.split('\n').filter((line) => line !== '')
const hasProgram = (name: string): boolean => spawnSync(name, ['--version']).status === 0

describe('complete', () => {
  it.each([
    [['wat'], ['watch', 'watches']],
    [
      ['quota', ''],
      ['list', 'set', 'del', 'help'],
    ],
    [['context', 'u'], ['use']],
    [['get', '--he'], ['--hex']],
    [['get', '--js'], ['--json']],
    [['ls', '/', '--server', ''], []],
    [['completion', 'b'], ['bash']],
    [['get', ''], ['/']],
    [['compl'], ['completion']],
  ])('%j offers %j', async (words, offered) => {
    expect(await complete(...words)).toEqual(offered)
  })

  it('offers the paths of the server, and goes on below a path', async () => {
    await stage.createNodes({ '/app': null, '/app/one': null, '/app/two': null, '/leaf': null })
    expect(await complete('get', '/')).toEqual(['/app', '/leaf', '/zookeeper'])
    expect(await complete('get', '-s', '/ap')).toEqual(['/app', '/app/'])
    expect(await complete('get', '/app/')).toEqual(['/app/one', '/app/two'])
    expect(await complete('ls', '/le')).toEqual(['/leaf'])
    expect(await complete('get', '/ap', '--server', '127.0.0.1:1', '/ap')).toEqual([])
  })

  it('leaves out names that a shell would interpret', async () => {
    const names = [
      'a;reboot',
      '$(reboot)',
      'a b',
      'a`b`',
      "a'b",
      'a"b',
      'a&b',
      'a|b',
      'a>b',
      'a*',
      'good-1.x',
    ]
    await stage.createNodes({
      '/names': null,
      ...Object.fromEntries(names.map((name) => [`/names/${name}`, null])),
    })
    expect(await complete('get', '/names/')).toEqual(['/names/good-1.x'])
  })
})

describe('completion', () => {
  it.each(['bash', 'zsh', 'fish'].map((name) => [name, hasProgram(name)] as const))(
    'prints a script that %s accepts (installed: %s)',
    async (shell, isInstalled) => {
      const { code, out } = await stage.run(['completion', shell])
      expect(code).toBe(0)
      expect(out).toContain('zabra complete -- ')
      if (isInstalled) expect(spawnSync(shell, ['-n'], { input: out })).toMatchObject({ status: 0 })
    },
  )

  it('refuses another shell', async () => {
    expect(await stage.run(['completion', 'tcsh'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('bash, zsh, fish') as unknown,
    })
  })
})

describe('man', () => {
  it('writes a page for each command', async () => {
    const folder = join(stage.folder, 'man')
    expect((await stage.run(['man', '--output', folder])).code).toBe(0)
    const pages = readdirSync(folder)
    expect(pages).toContain('zabra.1')
    expect(pages).toContain('zabra-set-acl.1')
    expect(pages).not.toContain('zabra-complete.1')
    const page = readFileSync(join(folder, 'zabra-get.1'), 'utf8')
    expect(page).toMatch(
      /^\.TH ZABRA-GET 1 "" "zabra 1\.2\.3" "Zabra"\n\.SH NAME\nzabra\\-get \\- print the data/,
    )
    expect(page).toContain('.B \\-s, \\-\\-stat\nprint the stat too')
    expect((await stage.run(['man', 'get'])).out).toBe(page)
    expect((await stage.run(['man', 'gett'])).code).toBe(2)
  })
})

describe('the shell', () => {
  it('help shows the usage of a command, and a mistyped name gets a suggestion', async () => {
    expect((await stage.run(['shell', '-c', 'help get'])).out).toBe('get [-s] [-w] [-b] [-x] path\n')
    expect(await stage.run(['shell', '-c', 'help gett'])).toMatchObject({ code: 2 })
    expect((await stage.run(['shell', '-c', 'gte /'])).err).toMatch(
      /Command not found gte\. Did you mean \w+\?\n$/,
    )
    expect((await stage.run(['shell', '-c', 'nonsense /'])).err).toMatch(/Command not found nonsense\n$/)
  })
})
