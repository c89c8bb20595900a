import { InvalidArgumentError } from 'commander'
import { duration, timeOption } from '../arguments.ts'
import { runChild } from '../child.ts'
import type { CommandModule, Context } from '../context.ts'
import { ExitCode, Failure, UsageError } from '../exit-codes.ts'
import { note, pause, print, printJson } from '../io.ts'
import type { AdminClient } from './admin-client.ts'
import { openAdmin, withAdminOption, type AdminFlags } from './admin-options.ts'
import { safeLine } from '../text/bytes.ts'
import { printTable } from '../text/table.ts'
import {
  checkDrainTimes,
  isRestarted,
  undrainServer,
  withDrainOptions,
  withPermit,
  type DrainTimes,
  type Uptime,
} from './drain.ts'
import { planUpgrade, type UpgradedCluster, type UpgradedMember } from './upgrade-plan.ts'

/** Time between two questions whether a member is back, in milliseconds. */
const POLL_MS = 500
const MAX_MS = 86_400_000

interface Flags extends AdminFlags, DrainTimes {
  readonly exec: string
  readonly adminOf?: ReadonlyMap<number, string>
  readonly adminPattern?: string
  readonly from?: readonly number[]
  readonly ready: number
  readonly dryRun?: boolean
}

/** A member with what its restart takes. */
interface Step {
  readonly id: number
  readonly state: string
  /** Its HTTP port. */
  readonly url: string
  /** What the shell runs. */
  readonly command: string
}

/** `zabra cluster roll`: restarts the members of an ensemble one after the other. */
export const roll: CommandModule = (command, context) => {
  withDrainOptions(withAdminOption(command.command('roll')))
    .description(
      'restart all members, one after the other: permit, drain, your command, until each is ready again',
    )
    .requiredOption(
      '--exec <command>',
      'restarts a member: a line for sh, in which {id} and {host} are those of the member, such as "ssh {host} systemctl restart zabra"',
    )
    .option('--admin-of <id=url,…>', 'the HTTP port of each member', adminsArgument)
    .option('--admin-pattern <url>', 'the same for all, such as http://{host}:8080')
    .addOption(
      timeOption(
        '--ready <time>',
        'how long a member may take until it is ready again',
        duration(0, MAX_MS),
        '10m',
      ),
    )
    .option(
      '--from <ids>',
      'only these members, in this order, as a roll that has stopped names them',
      idsArgument,
    )
    .option('-n, --dry-run', 'print the steps')
    .addHelpText('after', HELP)
    .action((flags: Flags) => run(context, flags))
}

const HELP = `
Observers come first, then followers, the leader last, as zabra upgrade plan has them. It stops at the
first trouble and says how to go on. --admin names any member, for the plan. The HTTP port of each
member has to be reachable, to drain it and to see that it was restarted: open it to this machine
(admin.serverAddress), or give tunnels (ssh -L 8081:127.0.0.1:8080 zk1) in --admin-of. The role operate
is needed. The command has no input; its exit code has to be 0. Permit and drain are renewed while it
runs, and end with their time where this program is killed.`

async function run(context: Context, flags: Flags): Promise<void> {
  const { io, options } = context
  checkDrainTimes(flags)
  const steps = await planSteps(context, flags)
  if (flags.dryRun === true) return showSteps(context, steps)
  for (const [index, step] of steps.entries()) {
    const begun = performance.now()
    try {
      await restart(context, step, flags)
    } catch (error) {
      const [done, left] = [steps.slice(0, index), steps.slice(index)].map((some) => some.map(({ id }) => id))
      const restarted = done!.length === 0 ? 'none' : done!.join(', ')
      note(
        io,
        `stopped at server ${step.id}; restarted so far: ${restarted}. Look at zabra cluster status, and go on with --from ${left!.join(',')}, without ${step.id} if it was restarted`,
      )
      throw error
    }
    const seconds = Math.round((performance.now() - begun) / 1000)
    if (options().json) printJson(io, { id: step.id, restarted: true, seconds })
    else print(io, `server ${step.id} is ready again, after ${seconds} s`)
  }
}

async function planSteps(context: Context, flags: Flags): Promise<readonly Step[]> {
  const { adminOf, adminPattern, from } = flags
  if ((adminOf === undefined) === (adminPattern === undefined))
    throw new UsageError(
      `Expected the HTTP ports of the members in --admin-of or in --admin-pattern, got ${adminOf === undefined ? 'neither' : 'both'}. Give one of them.`,
    )
  const found = await openAdmin(context, flags).json<UpgradedCluster>('GET', '/api/v1/cluster')
  const { order, problems, notes } = planUpgrade(found)
  if (problems.length > 0)
    throw new Failure(`Not now: ${problems.map(safeLine).join('; ')}.`, ExitCode.unhealthy)
  for (const text of notes) note(context.io, safeLine(text))
  const chosen = from?.map((id) => memberOf(order, id)) ?? order
  return chosen.map((member) => {
    const { id, state } = member
    const url = adminOf === undefined ? filled(adminPattern!, member, { isUrl: true }) : adminOf.get(id)
    if (url === undefined)
      throw new UsageError(`Expected the HTTP port of server ${id} in --admin-of, got none. Add ${id}=URL.`)
    return { id, state, url, command: filled(flags.exec, member) }
  })
}

function memberOf(order: readonly UpgradedMember[], wanted: number): UpgradedMember {
  const found = order.find(({ id }) => id === wanted)
  if (found !== undefined) return found
  throw new UsageError(
    `There is no member ${wanted}. The members are ${order.map(({ id }) => id).join(', ')}.`,
  )
}

function showSteps({ io, options }: Context, steps: readonly Step[]): void {
  if (options().json) for (const step of steps) printJson(io, step)
  else
    printTable(
      io,
      ['id', 'state', 'HTTP port', 'command'],
      steps.map(({ id, state, url, command }) => [String(id), state, url, command]),
    )
}

async function restart(context: Context, step: Step, flags: Flags): Promise<void> {
  const { id, url } = step
  const admin = openAdmin(context, { admin: url })
  const self = await admin.json<Self>('GET', '/api/v1/self')
  if (self.id !== id)
    throw new Failure(
      `Expected server ${id} at ${url}, got server ${self.id}. Name the HTTP port of each member.`,
      ExitCode.refused,
    )
  note(context.io, `server ${id}: waits for the permit to stop`)
  await withPermit(context, { id, admin: url }, flags, async () => {
    const begun = await runCommand(context, step)
    await untilReady(context, admin, { id, begun, withinMs: flags.ready })
  })
}

/** Runs the command of a server. Resolves to when that began, on the clock of `performance`. */
async function runCommand({ io, options }: Context, { id, command }: Step): Promise<number> {
  note(io, `server ${id}: runs ${safeLine(command)}`)
  const begun = performance.now()
  // Standard output has JSON alone.
  const shown = options().json ? { ...io, stdout: io.stderr } : io
  const code = await runChild(shown, [command], { shell: true, input: new Uint8Array(0), stop: io.signal })
  io.signal.throwIfAborted()
  if (code !== 0)
    throw new Failure(`The command for server ${id} has exited with ${code}.`, ExitCode.unexpected)
  return begun
}

/** What a server says of itself. */
interface Self extends Uptime {
  readonly id: number
  readonly ready: boolean
  readonly draining: boolean
  readonly stopPermitMs: number
  readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly detail: string }[]
}

async function untilReady(
  { io }: Context,
  admin: AdminClient,
  { id, begun, withinMs }: { readonly id: number; readonly begun: number; readonly withinMs: number },
): Promise<void> {
  let reason = ''
  for (;;) {
    // A server that reads its data answers 503.
    const answer = admin.json<Self | { readonly detail: string }>('GET', '/api/v1/self', {
      accepts: [200, 503],
    })
    const self = await answer.catch((error: unknown) => {
      io.signal.throwIfAborted()
      if (error instanceof Failure && error.exitCode !== ExitCode.connection) throw error
      return error as Error
    })
    if (self instanceof Error) reason = self.message
    else if ('detail' in self) reason = self.detail
    else if (!isRestarted(self, begun))
      reason = `it has been up for ${Math.round(self.uptimeMs / 1000)} s, so the command has not restarted it.`
    else if (self.draining || self.stopPermitMs > 0)
      // A renewal for the process before has reached this one.
      await undrainServer(admin)
    else if (self.id === id && self.ready) return
    else
      reason = self.checks
        .filter(({ ok }) => !ok)
        .map(({ name, detail }) => `${name}: ${detail}`)
        .join('; ')
    if (performance.now() - begun > withinMs)
      throw new Failure(
        `Server ${id} is not back and ready after ${Math.round(withinMs / 1000)} s: ${safeLine(reason)}`,
        ExitCode.unhealthy,
      )
    await pause(io, POLL_MS)
  }
}

/** Hosts that a shell takes as one plain word, and a program as no option: the configuration comes from the network. */
const HOST = /^(?!-)[\dA-Za-z][\dA-Za-z.-]{0,252}$/
const ADDRESS = /^(?=.*:)[\dA-Fa-f:.]{2,45}$/

/** Returns a text with the id and the host of a member. Throws a `Failure` where they are none that a shell may be given. */
function filled(text: string, { id, address }: UpgradedMember, { isUrl = false } = {}): string {
  if (!Number.isInteger(id) || id < 0) throw odd('the id of a member', id)
  const withId = text.replaceAll('{id}', String(id))
  if (!withId.includes('{host}')) return withId
  const host = (address ?? '')
    .split('|', 1)[0]!
    .replace(/:\d{1,5}$/, '')
    .replace(/^\[(.*)\]$/, '$1')
  const isAddress = ADDRESS.test(host)
  if (!isAddress && !HOST.test(host)) throw odd(`the host of server ${id}`, address)
  return withId.replaceAll('{host}', isUrl && isAddress ? `[${host}]` : host)
}

const odd = (what: string, got: unknown): Failure =>
  new Failure(
    `Expected ${what} as letters, digits, dots, colons and hyphens, got ${safeLine(JSON.stringify(got))}. Use {id} alone, and let the command know the hosts.`,
    ExitCode.refused,
  )

function adminsArgument(text: string): ReadonlyMap<number, string> {
  return new Map(
    text.split(',').map((part) => {
      const [, id, url] = /^\s*(\d{1,3})=(\S+)\s*$/.exec(part) ?? []
      if (id === undefined)
        throw new InvalidArgumentError('Expected id=url,… such as 1=http://zk1:8080,2=http://zk2:8080.')
      return [Number(id), url!]
    }),
  )
}

function idsArgument(text: string): readonly number[] {
  if (!/^\d{1,3}(?:,\d{1,3})*$/.test(text)) throw new InvalidArgumentError('Expected ids such as 3,2.')
  return text.split(',').map(Number)
}
