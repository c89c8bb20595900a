import type { ShellCommand } from '../command.ts'
import { safeData } from '../../text/bytes.ts'
import { statLines } from '../../text/stat.ts'

const CONFIG = '/zookeeper/config'

/** Prints the membership of the ensemble. */
export const config: ShellCommand = {
  usage: 'config [-c] [-w] [-s]',
  flags: ['-c', '-w', '-s'],
  async run(shell, { flags }) {
    if (flags.has('-w')) await shell.watches.addOneShot(shell.zk, CONFIG, 'data')
    const { data, stat } = await shell.zk.getConfig()
    const text = safeData(data)
    shell.out(flags.has('-c') ? forClients(text) : text)
    if (flags.has('-s')) for (const line of statLines(stat)) shell.out(line)
  },
}

/** Returns the configuration version and the client addresses in one line. */
function forClients(text: string): string {
  let version = ''
  const addresses: string[] = []
  for (const line of text.split('\n')) {
    const [key = '', value = ''] = line.split('=', 2)
    if (key.trim() === 'version') version = value.trim()
    const [members = '', client] = value.split(';', 2)
    if (!key.startsWith('server.') || client === undefined) continue
    const host = members.split(':')[0] ?? ''
    addresses.push(client.includes(':') ? client.trim() : `${host}:${client.trim()}`)
  }
  return `${version} ${addresses.join(',')}`
}
