import { X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import type { CertificateWithKey } from '@zabra/runtime/node/certificate-authority'
import { integer } from '../arguments.ts'
import type { CommandModule } from '../context.ts'
import { ExitCode, Failure, UsageError } from '../exit-codes.ts'
import { createPrivateFile, readTextFile, replacePrivateFile } from '../files/private-files.ts'
import { note, print, printJson, type Io } from '../io.ts'
import { safeLine } from '../text/bytes.ts'

interface Flags {
  readonly dir: string
  readonly days: number
  readonly name: string
  readonly member?: number
  readonly client?: string
  readonly hosts?: string
}

/** The identity of a member in its certificate, the example of `ssl.quorum.id`. */
const memberUri = (id: number): string => `spiffe://zabra/member/${id}`

/** Loaded with the first command that needs it: the library takes some megabytes. */
const library = () => import('@zabra/runtime/node/certificate-authority')

/** `zabra cert`: makes certificates for members and clients. */
export const cert: CommandModule = (program, { io, options }) => {
  const command = program.command('cert').description('make certificates for TLS between members and clients')
  const folder = ['--dir <folder>', 'where the authority is', 'certificates'] as const

  command
    .command('init-ca')
    .description(
      'make an authority: authority.pem to trust, and authority.key, which nothing but this command needs',
    )
    .option(...folder)
    .option('--name <name>', 'name of the authority', 'Zabra')
    .option('--days <days>', 'how long it is valid', integer(1), 3650)
    .action(async ({ dir, name, days }: Flags) => {
      const { createAuthority } = await library()
      const { key, certificate } = createAuthority({ name, days })
      const advice =
        'Remove it if no certificate that it has signed is in use, or choose another folder with --dir.'
      await createPrivateFile(authorityFiles(dir).key, key, advice)
      await createPrivateFile(authorityFiles(dir).certificate, certificate, advice)
      const files = authorityFiles(dir)
      if (options().json) printJson(io, files)
      else print(io, files.certificate, files.key)
    })

  command
    .command('issue')
    .description(
      'make a key with a certificate for a member or a client, in one PEM file that only its owner can read',
    )
    .option(...folder)
    .option('--member <id>', 'the id of the member, as in server.N', integer(0, 255))
    .option('--hosts <a,b>', 'hosts and addresses of the member, as in its server.N line')
    .option('--client <name>', 'a client with this name, in place of a member')
    .option('--days <days>', 'how long it is valid', integer(1), 365)
    .action(async (flags: Flags) => {
      const { issueCertificate } = await library()
      const { file, name, hosts, uris } = subjectOf(flags)
      const authority = await readAuthority(flags.dir)
      const issued = orUsageError(() => issueCertificate(authority, { name, hosts, uris, days: flags.days }))
      const path = join(flags.dir, file)
      await createPrivateFile(path, pemOf(issued), 'zabra cert renew renews it; or remove it first.')
      printFile(path)
      if (flags.member === undefined) return
      note(io, 'copy it to the member with the certificate of the authority, and add to its zoo.cfg:')
      for (const line of [
        'sslQuorum=true',
        `ssl.quorum.keyStore.location=${path}`,
        `ssl.quorum.trustStore.location=${authorityFiles(flags.dir).certificate}`,
      ])
        io.stderr.write(`${line}\n`)
    })

  command
    .command('show')
    .description('print the owner, names and end of the first certificate in each file')
    .argument('<files...>', 'PEM files')
    .action(async (files: readonly string[]) => {
      let ended = 0
      for (const file of files) {
        const shown = describe(file, await readCertificate(file))
        if (shown.daysLeft < 0) ended++
        if (options().json) printJson(io, shown)
        else printLines(io, shown)
      }
      if (ended > 0)
        throw new Failure(
          `${ended} of ${files.length} certificates have ended. Renew them.`,
          ExitCode.unhealthy,
        )
    })

  command
    .command('renew')
    .description(
      'replace the key and certificate in each file by new ones with the same names; servers read them within 10 s',
    )
    .argument('<files...>', 'files of zabra cert issue')
    .option(...folder)
    .option('--days <days>', 'how long they are valid', integer(1), 365)
    .action(async (files: readonly string[], { dir, days }: Flags) => {
      const { renewCertificate } = await library()
      const authority = await readAuthority(dir)
      for (const file of files) {
        const older = await readCertificate(file)
        if (older.ca)
          throw new UsageError(
            `Expected certificates of members or clients, got that of an authority in ${file}.`,
          )
        const renewed = orUsageError(() => renewCertificate(authority, older.toString(), { days }))
        await replacePrivateFile(file, pemOf(renewed))
        printFile(file)
      }
    })

  function printFile(file: string): void {
    if (options().json) printJson(io, { file })
    else print(io, file)
  }
}

const authorityFiles = (folder: string) => ({
  certificate: join(folder, 'authority.pem'),
  key: join(folder, 'authority.key'),
})

const pemOf = ({ key, certificate }: CertificateWithKey): string => key + certificate

async function readAuthority(folder: string): Promise<CertificateWithKey> {
  const advice = 'Make an authority with zabra cert init-ca, or name its folder with --dir.'
  const files = authorityFiles(folder)
  return {
    certificate: await readTextFile(files.certificate, advice),
    key: await readTextFile(files.key, advice),
  }
}

/** Resolves to the first certificate in a file. */
async function readCertificate(file: string): Promise<X509Certificate> {
  const text = await readTextFile(file, 'Check the path.')
  const [block] = /-----BEGIN CERTIFICATE-----[^]*?-----END CERTIFICATE-----/.exec(text) ?? []
  try {
    if (block !== undefined) return new X509Certificate(block)
  } catch {
    // The message below fits a damaged certificate too.
  }
  throw new UsageError(`Expected a certificate in PEM in ${file}, got none that can be read.`)
}

/** Returns the file and the names of a certificate. Throws a `UsageError` for contradicting options. */
function subjectOf({ member, client, hosts }: Flags): {
  file: string
  name: string
  hosts: readonly string[]
  uris: readonly string[]
} {
  if ((member === undefined) === (client === undefined))
    throw new UsageError('Expected either --member N with --hosts, or --client NAME.')
  const names = (hosts ?? '')
    .split(',')
    .map((host) => host.trim())
    .filter((host) => host !== '')
  if (client !== undefined) {
    if (!/^[\w.@-]{1,64}$/.test(client))
      throw new UsageError('Expected a name of up to 64 letters, digits and . _ @ - after --client.')
    return { file: `client-${client}.pem`, name: client, hosts: names, uris: [] }
  }
  if (names.length === 0)
    throw new UsageError(`Expected --hosts with the hosts in the line server.${member} of zoo.cfg, got none.`)
  return { file: `server-${member}.pem`, name: `server ${member}`, hosts: names, uris: [memberUri(member!)] }
}

/** Runs an action; an argument that it refuses is a mistake of the user. */
function orUsageError<T>(action: () => T): T {
  try {
    return action()
  } catch (error) {
    if (error instanceof RangeError) throw new UsageError(error.message)
    throw error
  }
}

interface Shown {
  readonly file: string
  readonly subject: string
  readonly issuer: string
  readonly names: readonly string[]
  readonly notBefore: string
  readonly notAfter: string
  readonly daysLeft: number
  readonly isAuthority: boolean
}

function describe(file: string, certificate: X509Certificate): Shown {
  const end = new Date(certificate.validTo)
  return {
    file,
    subject: certificate.subject.split('\n').join(', '),
    issuer: certificate.issuer.split('\n').join(', '),
    names: (certificate.subjectAltName ?? '').split(', ').filter((name) => name !== ''),
    notBefore: new Date(certificate.validFrom).toISOString(),
    notAfter: end.toISOString(),
    daysLeft: Math.floor((end.getTime() - Date.now()) / 86_400_000),
    isAuthority: certificate.ca,
  }
}

function printLines(io: Io, shown: Shown): void {
  const { file, subject, issuer, names, notBefore, notAfter, daysLeft, isAuthority } = shown
  const rest = daysLeft < 0 ? 'it has ended' : `${daysLeft} days left`
  print(
    io,
    `${file}:`,
    safeLine(`  subject  ${subject}${isAuthority ? ' (an authority)' : ''}`),
    safeLine(`  names    ${names.join(', ') || 'none'}`),
    safeLine(`  issuer   ${issuer}`),
    `  valid    ${notBefore} to ${notAfter} (${rest})`,
  )
}
