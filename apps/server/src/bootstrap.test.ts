import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const bootstrap = fileURLToPath(new URL('../bootstrap.mjs', import.meta.url))

/** Runs the script under a Node that claims to be another version. */
function startOn(version: string) {
  const pretend = `data:text/javascript,Object.defineProperty(process,"version",{value:"${version}"})`
  return spawnSync(process.execPath, ['--import', pretend, bootstrap], { encoding: 'utf8', timeout: 30_000 })
}

describe('npm start', () => {
  test.each(['v12.22.12', 'v18.20.8', 'v20.18.3'])(
    'prints the required version in one line on Node %s',
    (version) => {
      const { status, stderr, stdout } = startOn(version)
      expect(status).toBe(1)
      expect(stdout).toBe('')
      expect(stderr.trim().split('\n')).toHaveLength(1)
      expect(stderr).toContain(`Zabra needs Node 20.19 or later, and this is ${version}`)
    },
  )

  test('builds the programs that README.md runs in a checkout', () => {
    const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')
    const folders = new Set(read('README.md').match(/(?<=^node )apps\/\w+(?=\/dist\/main\.js)/gm))
    expect(folders.size).toBeGreaterThan(0)
    for (const folder of folders) {
      const { name } = JSON.parse(read(`${folder}/package.json`)) as { name: string }
      expect(read('apps/server/bootstrap.mjs')).toContain(`'--filter=${name}'`)
    }
  })

  test('has no syntax that Node 12 cannot parse', () => {
    const source = readFileSync(bootstrap, 'utf8').replace(/^\s*\/\/.*$/gm, '')
    expect(source).not.toMatch(/\?\.|\?\?|from 'node:|^await |#\w+ ?[=(]|\.at\(|replaceAll/m)
  })
})
