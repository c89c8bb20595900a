import { afterEach, expect, test, vi } from 'vitest'
import { nodeSystem } from './system.ts'

const user = vi.hoisted(() => ({ fails: false }))

vi.mock(import('node:os'), async (original) => {
  const os = await original()
  const userInfo = (() => {
    if (user.fails) throw new Error('uv_os_get_passwd returned ENOENT (no such file or directory)')
    return os.userInfo()
  }) as typeof os.userInfo
  return { ...os, userInfo }
})

afterEach(() => {
  user.fails = false
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
})

const environment = (): ReadonlyMap<string, string> => new Map(nodeSystem.environment())

test('the environment names the user by its id where the machine knows no name of it, as in many containers', () => {
  user.fails = true
  vi.stubEnv('HOME', '/home/of-the-pod')
  const entries = environment()
  expect(entries.get('user.name')).toBe(String(process.getuid!()))
  expect(entries.get('user.home')).toBe('/home/of-the-pod')
})

test('the environment has the working folder as unknown once that folder is removed', () => {
  vi.spyOn(process, 'cwd').mockImplementation(() => {
    throw new Error('ENOENT: no such file or directory, uv_cwd')
  })
  expect(environment().get('user.dir')).toBe('?')
})
