"""The verbs for what a tool can do to the world, in four languages, as data: how one says that one has done it."""

from __future__ import annotations

from functools import lru_cache

from service.core.grounding.fields import split_name
from service.core.grounding.reading.languages import split_words
from service.core.trace import ToolDef

_TABLE = """
cancel | cancel canceled cancelled void voided abort aborted | storniert abgesagt gekündigt | cancelado cancelada anulado anulada | annulé annulée résilié
book | book booked reserve reserved | gebucht reserviert | reservado reservada | réservé réservée
refund | refund refunded reimburse reimbursed | erstattet zurückerstattet rückerstattet | reembolsado reembolsada devuelto | remboursé remboursée
credit | credit credited issue issued | gutgeschrieben | abonado | crédité
send | send sent email emailed e-mailed mail mailed text texted forward forwarded notify notified message messaged inform informed write wrote written told | gesendet geschickt verschickt versandt weitergeleitet benachrichtigt informiert gemailt | enviado enviada reenviado avisado notificado | envoyé envoyée transféré prévenu notifié
update | update updated modify modified change changed edit edited adjust adjusted set put cap capped dim dimmed rename renamed correct corrected | geändert aktualisiert angepasst gesetzt eingestellt umbenannt | actualizado actualizada cambiado cambiada modificado ajustado puesto | modifié modifiée changé mis réglé
create | create created set setup add added open opened file filed submit submitted register registered post posted make made generate generated | erstellt angelegt hinzugefügt eröffnet eingereicht registriert eingetragen | creado creada añadido añadida abierto registrado registrada presentado | créé créée ajouté ajoutée ouvert déposé inscrit enregistré
delete | delete deleted remove removed erase erased drop dropped purge purged clear cleared empty emptied | gelöscht entfernt geleert | borrado eliminado eliminada | supprimé supprimée effacé
schedule | schedule scheduled reschedule rescheduled plan planned | geplant terminiert verschoben angesetzt eingeplant | programado programada planificado | planifié planifiée programmé reporté
order | order ordered purchase purchased buy bought | bestellt gekauft | pedido comprado comprada encargado | commandé acheté
pay | pay paid charge charged settle settled | bezahlt überwiesen beglichen | pagado abonado | payé réglée
transfer | transfer transferred wire wired sent | überwiesen übertragen | transferido | viré transféré
block | block blocked freeze frozen froze lock locked suspend suspended disable disabled deactivate deactivated | gesperrt blockiert deaktiviert verriegelt abgeschlossen | bloqueado bloqueada desactivado cerrado | bloqué bloquée désactivé verrouillé
mute | mute muted silence silenced | stummgeschaltet | silenciado |
unblock | unblock unblocked unfreeze unfrozen unlock unlocked enable enabled activate activated | entsperrt aktiviert freigeschaltet aufgeschlossen | desbloqueado activado activada | débloqué activé activée déverrouillé
approve | approve approved accept accepted | genehmigt freigegeben angenommen | aprobado aceptado | approuvé accepté
reject | reject rejected decline declined | abgelehnt | rechazado | refusé rejeté
assign | assign assigned | zugewiesen | asignado asignada | attribué assigné
close | close closed resolve resolved | geschlossen | cerrado cerrada | fermé clôturé
move | move moved relocate relocated | umgezogen | movido trasladado | déplacé
archive | archive archived | archiviert | archivado | archivé
merge | merge merged | zusammengeführt | fusionado combinado | fusionné
commit | commit committed | eingecheckt | confirmado |
push | push pushed | | | poussé
export | export exported | exportiert | exportado | exporté
publish | publish published release released deploy deployed rolled | veröffentlicht ausgerollt | publicado desplegado | publié déployé
subscribe | subscribe subscribed enrol enrolled enroll | abonniert angemeldet | suscrito inscrito | abonné
unsubscribe | unsubscribe unsubscribed | abgemeldet abbestellt | | désabonné
start | start started restart restarted launch launched resume resumed run ran trigger triggered reboot rebooted | gestartet angestoßen | iniciado reiniciado lanzado | lancé démarré redémarré
stop | stop stopped pause paused terminate terminated halt halted | gestoppt pausiert angehalten | detenido parado pausado | arrêté
renew | renew renewed extend extended prolong | verlängert | renovado ampliado prolongado | renouvelé prolongé
invite | invite invited | eingeladen | invitado | invité
upload | upload uploaded | hochgeladen | subido | téléversé
share | share shared grant granted | freigegeben geteilt | compartido | partagé
upgrade | upgrade upgraded downgrade downgraded switch switched changed moved | hochgestuft gewechselt umgestellt geändert | mejorado cambiado cambiada | passé changé
apply | apply applied redeem redeemed | angewendet eingelöst | aplicado aplicada canjeado | appliqué appliquée
restore | restore restored rollback rolled revert reverted | wiederhergestellt zurückgesetzt | restaurado revertido | restauré
return | return returned | zurückgegeben | devuelto | retourné
exchange | exchange exchanged swap swapped replace replaced | umgetauscht getauscht ersetzt | reemplazado sustituido | échangé remplacé
turn | turn turned | eingeschaltet ausgeschaltet | encendido apagado | allumé éteint
log | log logged record recorded save saved store stored | gespeichert protokolliert | guardado anotado | enregistré sauvegardé
print | print printed | gedruckt | impreso | imprimé
withdraw | withdraw withdrawn withdrew revoke revoked | zurückgezogen widerrufen | retirado | retiré
request | request requested ask asked | angefordert beantragt bestellt | solicitado solicitada pedido pedida | demandé demandée
place | place placed put submit submitted | platziert abgegeben aufgegeben | colocado puesto hecho | placé passé déposé
grant | grant granted award awarded credit credited gave given | gewährt gutgeschrieben | concedido concedida abonado | accordé crédité
refill | refill refilled prepare prepared | nachbestellt | encargado encargada preparado | renouvelé préparé
bring | bring brought deliver delivered | gebracht geliefert | traído llevado entregado | apporté livré
hold | hold held | vorgemerkt reserviert | retenido reservado | réservé
donate | donate donated made | gespendet | donado donada | donné
claim | claim claimed file filed report reported | gemeldet eingereicht | reclamado presentado | déclaré
enable | enable enabled switched turned | eingeschaltet | encendido activado | allumé activé
disable | disable disabled switched turned | ausgeschaltet | apagado desactivado | éteint désactivé
complete | complete completed finish finished tick ticked marked mark | abgehakt erledigt | completado marcado | terminé coché
attach | attach attached | angehängt | adjuntado | joint
"""


IRREGULAR = split_words(
    "sent set put made bought paid withdrawn withdrew sold let begun froze frozen ran setup gave given brought held wrote written told"
)
"""Past forms of acting that do not end in -ed."""


@lru_cache(maxsize=256)
def list_verb_forms(action: str) -> frozenset[str]:
    """Return every word for an action, in all languages."""
    told = [word for words in TOLD.values() for word, actions in words.items() if action in actions]
    return frozenset([*told, *[word for word, actions in _NAMED.items() if action in actions]])


def _read_table() -> tuple[dict[str, dict[str, frozenset[str]]], dict[str, frozenset[str]]]:
    told: dict[str, dict[str, set[str]]] = {language: {} for language in ("en", "de", "es", "fr")}
    named: dict[str, set[str]] = {}
    for line in _TABLE.strip().splitlines():
        action, *forms = (part.strip() for part in line.split("|"))
        for word in forms[0].split():
            named.setdefault(word, set()).add(action)
        for language, words in zip(told, forms, strict=True):
            for word in words.split():
                if language != "en" or word.endswith("ed") or word in IRREGULAR:
                    told[language].setdefault(word, set()).add(action)
    frozen = {lang: {word: frozenset(actions) for word, actions in each.items()} for lang, each in told.items()}
    return frozen, {word: frozenset(actions) for word, actions in named.items()}


TOLD, _NAMED = _read_table()
"""By language: the participles and past forms that tell of an action, and the actions that each may be."""

SELF_MADE = split_words(
    "create update merge export move log apply share set turn start stop exchange order return close print"
)
"""Actions whose verbs tell as often of a text, a list or a thought: they prove nothing."""

_READING = split_words(
    "get list search find lookup look read fetch check view show query retrieve calculate compute think describe "
    "count browse inspect analyze explain estimate compare translate convert validate verify preview quote"
)


@lru_cache(maxsize=4096)
def list_actions(name: str) -> frozenset[str]:
    """Return the actions of a tool, judging by the verbs in its name.

    >>> sorted(list_actions("cancel_pending_order")), sorted(list_actions("getUser"))
    (['cancel', 'order'], [])
    """
    return frozenset([action for word in split_name(name) for action in _NAMED.get(word, ())])


@lru_cache(maxsize=4096)
def list_verb_objects(name: str) -> frozenset[str]:
    """Return what a tool acts on, judging by its name: its words without the first verb, in the singular.

    >>> sorted(list_verb_objects("cancel_pending_orders"))
    ['order', 'pending']
    """
    words = split_name(name)
    first = next((word for word in words if word in _NAMED), "")
    return frozenset([word.removesuffix("s") if len(word) > 3 else word for word in words if word != first])


def only_reads(name: str, tool: ToolDef | None) -> bool:
    """Whether a tool changes nothing: its `readOnlyHint` decides, or else whether its name begins with a reading verb."""
    hint = tool.annotations.get("readOnlyHint") if tool is not None and tool.annotations else None
    if isinstance(hint, bool):
        return hint
    words = split_name(name)
    return bool(words) and words[0] in _READING
