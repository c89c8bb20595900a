import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { AdminClient } from './admin-client.ts'

/** The option of commands that use the HTTP port of a server. */
export interface AdminFlags {
  readonly admin?: string
}

/** Adds the option `--admin` to a command. */
export const withAdminOption = (command: Command): Command =>
  command.option('--admin <url>', 'the HTTP port of a server (else ZABRA_ADMIN, else http://127.0.0.1:8080)')

/** Returns a client of the HTTP port that flags or environment name. */
export const openAdmin = ({ io, options }: Context, { admin }: AdminFlags): AdminClient =>
  new AdminClient(admin ?? io.environment['ZABRA_ADMIN'], options(), io.signal)

/** Returns clients of the HTTP ports that flags or environment name, separated by commas. */
export const openAdmins = ({ io, options }: Context, { admin }: AdminFlags): readonly AdminClient[] =>
  (admin ?? io.environment['ZABRA_ADMIN'] ?? '')
    .split(',')
    .map((url) => new AdminClient(url.trim(), options(), io.signal))
