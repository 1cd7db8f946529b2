// LemonLDAP::NG, the provider that Debian has, as a process of its own: a portal in Perl with its demonstration users.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '../free-port.ts'
import { takeRsaPair } from '../rsa-keys.ts'
import { debianPackages } from './cached-folder.ts'

const PACKAGES = [
  'liblemonldap-ng-portal-perl',
  'lemonldap-ng-fastcgi-server',
  'libstring-random-perl',
  'libio-string-perl',
  'libmime-tools-perl',
]
const START_DEADLINE_MS = 30_000

// Otherwise a signal would end this process without what it does at its exit.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1))

export const CLIENT = { id: 'gw-basic', secret: 'basic-secret' }
/** One of those whom it brings along. */
export const DOCTOR = { username: 'dwho', password: 'dwho' }
export const TOKEN_SECONDS = 60

/** `undefined` if its packages cannot be had. */
export async function startLemonldap(gateway: string) {
  const root = await debianPackages('lemonldap-ng', PACKAGES)
  if (root === undefined) return undefined
  const port = await freePort()
  const issuer = `http://127.0.0.1:${port}`
  const folder = mkdtempSync(join(tmpdir(), 'menshen-lemonldap-'))
  writeConfiguration(root, folder, issuer, gateway)
  const log = openSync(join(folder, 'log'), 'a')
  const portal = join(root, 'usr/share/lemonldap-ng/portal/htdocs/index.psgi')
  const address = ['--host', '127.0.0.1', '--port', String(port)]
  const plackup = [join(root, 'usr/bin/plackup'), '-E', 'deployment', '-s', 'Standalone', ...address, portal]
  const child = spawn('perl', plackup, { env: perlEnvironment(root, folder), stdio: ['ignore', log, log] })
  const exited = once(child, 'exit')
  const endIt = () => child.kill('SIGKILL')
  process.once('exit', endIt)

  async function close(): Promise<void> {
    endIt()
    process.off('exit', endIt)
    await exited
    rmSync(folder, { recursive: true, force: true })
  }

  const deadline = Date.now() + START_DEADLINE_MS
  while (!(await isUp(issuer))) {
    if (child.exitCode !== null || Date.now() > deadline) {
      const said = readFileSync(join(folder, 'log'), 'utf8').slice(-2000)
      await close()
      throw new Error(`LemonLDAP::NG did not start:\n${said}`)
    }
    await pause(100)
  }
  return { issuer, close }
}

async function isUp(issuer: string): Promise<boolean> {
  const response = await fetch(`${issuer}/.well-known/openid-configuration`).catch(() => undefined)
  await response?.text()
  return response?.ok === true
}

/** Its own first configuration, with our provider in it and its files in a folder of ours. */
function writeConfiguration(root: string, folder: string, issuer: string, gateway: string): void {
  const sub = (name: string) => {
    mkdirSync(join(folder, name), { recursive: true })
    return join(folder, name)
  }
  const first = JSON.parse(readFileSync(join(root, 'var/lib/lemonldap-ng/conf/lmConf-1.json'), 'utf8'))
  const files = (options: object, name: string) => ({
    ...options,
    Directory: sub(name),
    LockDirectory: sub(`${name}/lock`),
  })
  const configuration = {
    ...first,
    portal: `${issuer}/`,
    domain: '127.0.0.1',
    applicationList: {},
    locationRules: {},
    exportedHeaders: {},
    reloadUrls: {},
    registerDB: 'Null',
    passwordDB: 'Null',
    notification: 0,
    loginHistoryEnabled: 0,
    trustedDomains: '*',
    globalStorageOptions: files(first.globalStorageOptions, 'sessions'),
    persistentStorageOptions: files(first.persistentStorageOptions, 'persistent'),
    localSessionStorageOptions: { ...first.localSessionStorageOptions, cache_root: sub('cache') },
    ...openIdConnect(issuer, gateway),
  }
  writeFileSync(join(sub('conf'), 'lmConf-1.json'), JSON.stringify(configuration))
  const templates = join(root, 'usr/share/lemonldap-ng/portal/templates')
  const ini = [
    ...['[all]', 'logLevel = error', 'checkTime = 600'],
    ...['[configuration]', 'type = File', `dirName = ${folder}/conf`],
    ...['[portal]', 'staticPrefix = /static', `templateDir = ${templates}`, 'languages = en'],
    ...['[handler]', 'status = 0'],
  ]
  writeFileSync(join(folder, 'lemonldap.ini'), `${ini.join('\n')}\n`)
  // The portal loads its captcha even where there is none, and that would bring all of ImageMagick.
  writeFileSync(join(sub('stub/GD'), 'SecurityImage.pm'), 'package GD::SecurityImage; sub import {} 1;\n')
}

function openIdConnect(issuer: string, gateway: string): object {
  const { privateKey, publicKey } = takeRsaPair()
  const client = {
    ClientID: CLIENT.id,
    ClientSecret: CLIENT.secret,
    DisplayName: 'Menshen',
    RedirectUris: `${gateway}/callback`,
    PostLogoutRedirectUris: `${gateway}/login`,
    IDTokenSignAlg: 'RS256',
    UserIDAttr: 'uid',
    Public: 0,
    RequirePKCE: 1,
    // Else it forgets at the sign-out where to send the user back to.
    BypassConsent: 1,
    AllowOffline: 1,
    LogoutBypassConfirm: 1,
    AccessTokenExpiration: TOKEN_SECONDS,
  }
  const named = Object.entries(client).map(([name, value]) => [`oidcRPMetaDataOptions${name}`, value])
  const claims = { name: 'cn', email: 'mail', preferred_username: 'uid', groups: 'groups;string;always' }
  return {
    issuerDBOpenIDConnectActivation: 1,
    oidcServiceMetaDataIssuer: issuer,
    oidcServiceKeyIdSig: 'key-1',
    oidcServicePrivateKeySig: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    oidcServicePublicKeySig: publicKey.export({ type: 'spki', format: 'pem' }),
    oidcServiceIgnoreScopeForClaims: 0,
    groups: { staff: '1', admins: `$uid eq "${DOCTOR.username}"` },
    oidcRPMetaDataOptions: { menshen: Object.fromEntries(named) },
    oidcRPMetaDataExportedVars: { menshen: claims },
    oidcRPMetaDataOptionsExtraClaims: { menshen: { groups: 'groups' } },
  }
}

function perlEnvironment(root: string, folder: string): NodeJS.ProcessEnv {
  const machine = execFileSync('perl', ['-MConfig', '-e', 'print $Config{archname}'], { encoding: 'utf8' })
  const libraries = join(root, 'usr/lib', machine.replace('-gnu-thread-multi', '-gnu'))
  const compiled = join(libraries, 'perl5')
  const versions = existsSync(compiled) ? readdirSync(compiled).map(version => join(compiled, version)) : []
  return {
    ...process.env,
    LLNG_DEFAULTCONFFILE: join(folder, 'lemonldap.ini'),
    PERL5LIB: [join(folder, 'stub'), join(root, 'usr/share/perl5'), ...versions].join(':'),
    LD_LIBRARY_PATH: libraries,
  }
}
